// ecm-rules for GitHub Copilot CLI: tells `ecm-hook` how full the window is, and of compactions. Kept by `ecm-rules install`.
const COMMAND = ["ecm-hook", "copilot"]

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

// What is injected, the hooks of .github/hooks/ are asked for; of these events no hook is told.
const PATIENCE = {
  "session.usage_info": USUAL,
  "session.compaction_start": UNHURRIED,
  "session.compaction_complete": UNHURRIED,
}

try {
  const { joinSession } = await import("@github/copilot-sdk/extension") // the client brings it along
  const session = await joinSession({})
  const { sessionId } = session
  let turn = Promise.resolve()
  session.on((event) => {
    const patience = PATIENCE[event?.type]
    if (patience === undefined) return
    // One call after the other: what happened first is told first.
    turn = turn
      .then(() => {
        const project = projectOf(process.cwd())
        return project && ask({ ev: `event.${event.type}`, d: { ...event, sessionId } }, project, patience)
      })
      .catch(() => {})
  })
} catch {
  // Another version of the client. It must not notice.
}
