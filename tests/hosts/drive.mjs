// What a client does to a shim: `node drive.mjs HOST SHIM PROJECT`, the calls on stdin as JSON, what came of each on stdout.
import { readFileSync } from "node:fs"
import { pathToFileURL } from "node:url"

const [host, shim, directory] = process.argv.slice(2)
const calls = JSON.parse(readFileSync(0, "utf8"))

async function opencode(module) {
  const hooks = await module.EcmRules({ directory, worktree: directory })
  return async ({ event, input, output }) => {
    if (event.startsWith("event.")) await hooks.event({ event: input })
    else await hooks[event]?.(input, output)
    return output
  }
}

async function pi(module) {
  const handlers = {}
  const sent = []
  module.default({ on: (type, handler) => (handlers[type] = handler), sendMessage: (...message) => sent.push(message) })
  return async ({ event, ctx }) => {
    const about = {
      cwd: directory,
      mode: ctx.mode,
      model: { id: ctx.model, contextWindow: ctx.contextWindow },
      getContextUsage: () => ctx.usage,
      sessionManager: { getSessionId: () => ctx.sessionId, getSessionFile: () => ctx.sessionFile, getLeafId: () => ctx.leaf },
    }
    const result = await handlers[event.type]?.(event, about)
    return { result, sent: sent.splice(0) }
  }
}

async function copilot() {
  return async ({ d }) => {
    globalThis.listener?.(d)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

process.on("unhandledRejection", (error) => {
  process.stderr.write(`unhandled: ${error}\n`)
})
process.chdir(directory)
const module = await import(pathToFileURL(shim).href)
const call = await { opencode, pi, copilot }[host](module)
const results = []
for (const given of calls) {
  // The client keeps what it hands over, and may hand over what JSON has no words for.
  const begun = Date.now()
  const result = await call(given)
  results.push({ result: result ?? null, milliseconds: Date.now() - begun })
}
process.stdout.write(JSON.stringify(results))
