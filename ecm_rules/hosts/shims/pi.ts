// ecm-rules for pi: hands its events to `ecm-hook` and puts the answers where the model reads them. Kept by `ecm-rules install`.
// Without types, so that any node runs it.
const COMMAND = ["ecm-hook", "pi"]

import { spawn } from "node:child_process"
import { existsSync } from "node:fs"
import path from "node:path"

// In milliseconds: within a turn, and where a compaction or a session's start may take its time.
const USUAL = 2000
const UNHURRIED = 10000

// The folder of the nearest configuration at or above `folder`, within the repository; undefined without one.
function projectOf(folder) {
  for (;;) {
    if (existsSync(path.join(folder, "eidolons.yaml"))) return folder
    const parent = path.dirname(folder)
    if (parent === folder || existsSync(path.join(folder, ".git"))) return undefined
    folder = parent
  }
}

// What the command answers to a payload: an object, empty where it says nothing; undefined for whatever else happens.
function ask(payload, cwd, patience) {
  return new Promise((resolve) => {
    let timer
    const end = (answer) => {
      clearTimeout(timer)
      resolve(answer)
    }
    try {
      const text = JSON.stringify(payload)
      const child = spawn(COMMAND[0], COMMAND.slice(1), { cwd, stdio: ["pipe", "pipe", "ignore"] })
      // Not only on "close": who else holds the pipe must not hold the client.
      timer = setTimeout(() => {
        child.kill("SIGKILL")
        child.stdout.destroy()
        end()
      }, patience)
      const chunks = []
      child.on("error", () => end())
      child.stdin.on("error", () => {})
      child.stdout.on("error", () => end())
      child.stdout.on("data", (chunk) => chunks.push(chunk))
      child.on("close", (code) => {
        try {
          const said = Buffer.concat(chunks).toString("utf8").trim()
          const answer = said ? JSON.parse(said) : {}
          end(code === 0 && answer && typeof answer === "object" ? answer : undefined)
        } catch {
          end()
        }
      })
      child.stdin.end(text)
    } catch {
      end()
    }
  })
}

const PATIENCE = {
  session_start: UNHURRIED,
  session_before_compact: UNHURRIED,
  session_compact: UNHURRIED,
}
// The session file has these too, and together they can be more than the hook takes.
const LEFT_OUT = new Set(["branchEntries", "messagesToSummarize", "turnPrefixMessages", "systemPrompt", "systemPromptOptions", "signal"])

function about(ctx) {
  const read = (value) => {
    try {
      return value()
    } catch {
      return undefined
    }
  }
  return {
    usage: read(() => ctx.getContextUsage()),
    cwd: ctx.cwd,
    mode: ctx.mode,
    sessionId: read(() => ctx.sessionManager.getSessionId()),
    sessionFile: read(() => ctx.sessionManager.getSessionFile()),
    leaf: read(() => ctx.sessionManager.getLeafId()),
    model: ctx.model?.id,
    contextWindow: ctx.model?.contextWindow,
  }
}

export default function (pi) {
  let kept = [] // what was to be told at the session's start, before there was a prompt
  let turn = Promise.resolve()

  // One call after the other: the hook keeps its state in files, and what happened first is told first.
  const forward = (type, event, ctx) => {
    const call = async () => {
      const project = projectOf(ctx.cwd)
      if (project === undefined) return undefined
      const told = Object.fromEntries(Object.entries(event).filter(([key]) => !LEFT_OUT.has(key)))
      if (event.preparation) {
        told.preparation = Object.fromEntries(Object.entries(event.preparation).filter(([key]) => !LEFT_OUT.has(key)))
      }
      return ask({ event: { ...told, type }, ctx: about(ctx) }, project, PATIENCE[type] ?? USUAL)
    }
    const next = turn.then(call).catch(() => undefined)
    turn = next
    return next
  }

  const message = (content) => ({ customType: "ecm-rules", content, display: false })

  const apply = {
    session_start: ({ text }) => {
      kept = text ? [text] : []
    },
    before_agent_start: ({ text }) => {
      const texts = [...kept, ...(text ? [text] : [])]
      kept = []
      return texts.length > 0 ? { message: message(texts.join("\n\n")) } : undefined
    },
    tool_result: ({ text }, event) => (text ? { content: [...event.content, { type: "text", text }] } : undefined),
    context: ({ messages }) => {
      const whole = Array.isArray(messages) && messages.length > 0 && messages.every((m) => typeof m?.role === "string")
      return whole ? { messages } : undefined
    },
    session_before_compact: () => undefined,
    session_compact: ({ text }) => {
      if (text) pi.sendMessage(message(text), { deliverAs: "steer" })
    },
    agent_settled: () => undefined,
    session_shutdown: () => undefined,
  }

  for (const [type, answered] of Object.entries(apply)) {
    pi.on(type, async (event, ctx) => {
      try {
        return answered((await forward(type, event, ctx)) ?? {}, event)
      } catch {
        return undefined // the client must not notice
      }
    })
  }
}
