// ecm-rules for OpenCode: hands its events to `ecm-hook` and puts the answers where the model reads them. Kept by `ecm-rules install`.
const COMMAND = ["ecm-hook", "opencode"]

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

// OpenCode sorts a message's parts by their ids, which begin with the time: this one comes last.
function partId() {
  const time = (BigInt(Date.now()) * 4096n + 4095n) & 0xffffffffffffn
  return `prt_${time.toString(16).padStart(12, "0")}${Math.random().toString(36).slice(2).padEnd(14, "0").slice(0, 14)}`
}

const apply = {
  "chat.message": ({ text }, input, output) => {
    if (!text) return
    const { id: messageID, sessionID } = output.message
    output.parts.push({ id: partId(), sessionID, messageID, type: "text", text, synthetic: true })
  },
  "tool.execute.after": ({ text }, input, output) => {
    if (!text) return
    if (typeof output.output === "string") output.output += `\n\n${text}`
    else if (Array.isArray(output.content)) output.content.push({ type: "text", text }) // an MCP tool's result
  },
  "experimental.chat.messages.transform": ({ messages }, input, output) => {
    const whole = Array.isArray(messages) && messages.length > 0 && messages.every((m) => m?.info && Array.isArray(m.parts))
    if (whole) output.messages.splice(0, output.messages.length, ...messages)
  },
}

const BUS = new Set(["session.created", "session.compacted", "session.idle", "message.updated"])

export const EcmRules = async ({ directory }) => {
  const parents = new Map() // of the sessions of subagents
  const turns = new Map() // the last call of each session
  const told = new Map() // the model, and the last message, that each session's hook knows

  // A subagent's window is booked apart from that of the session at the root.
  const rootOf = (session) => {
    let root
    for (let parent = parents.get(session); parent !== undefined && parent !== root; parent = parents.get(parent)) root = parent
    return root
  }

  // One call after the other within a session: the hook keeps its state in files, and what happened first is told first.
  const forward = (event, session, input, output, patience = USUAL) => {
    const call = async () => {
      try {
        const project = projectOf(directory)
        if (project === undefined) return
        const parentID = rootOf(session)
        const about = { ...input, ...(parentID !== undefined && { parentID }) }
        const answer = await ask({ event, input: about, ...(output && { output }) }, project, patience)
        if (answer && apply[event]) apply[event](answer, input, output)
        return answer
      } catch {
        // The client must not notice.
      }
    }
    const turn = (turns.get(session) ?? Promise.resolve()).then(call)
    turns.set(session, turn)
    return turn
  }

  const news = (about, session, value) => {
    const key = `${about} ${session}`
    if (told.get(key) === value) return false
    told.set(key, value)
    return true
  }

  const bus = (event) => {
    const { type, properties } = event
    if (!BUS.has(type)) return
    const session = properties.sessionID ?? properties.info?.sessionID ?? properties.info?.id
    if (type === "session.created" && properties.info?.parentID) parents.set(session, properties.info.parentID)
    if (type === "message.updated") {
      // It comes for every change of every message; the usage is known at the last one.
      const { id, role, time, tokens } = properties.info
      if (role !== "assistant" || !time?.completed || !tokens) return
      if (!news("message", session, `${id} ${tokens.total} ${tokens.input} ${tokens.output}`)) return
    }
    const patience = type === "session.created" || type === "session.compacted" ? UNHURRIED : USUAL
    return forward(`event.${type}`, session, event, undefined, patience)
  }

  // A surprise in what the client hands over is none for the client.
  const safely = (handle) => async (...given) => {
    try {
      await handle(...given)
    } catch {}
  }

  return {
    event: safely(({ event }) => bus(event)),
    "chat.message": safely((input, output) => forward("chat.message", input.sessionID, input, output)),
    "tool.execute.after": safely((input, output) => forward("tool.execute.after", input.sessionID, input, output)),
    "experimental.chat.messages.transform": safely((input, output) => {
      // The hook is told nowhere else whose request this is.
      const sessionID = input.sessionID ?? output.messages.findLast((message) => message.info?.sessionID)?.info.sessionID
      return forward("experimental.chat.messages.transform", sessionID, { ...input, sessionID }, output)
    }),
    "chat.params": safely(async ({ sessionID, agent, model }) => {
      if (agent === "title" || agent === "compaction") return
      // The rest of model and provider holds keys, and tells nothing.
      const { id, providerID, limit } = model
      if (!news("model", sessionID, JSON.stringify([id, providerID, limit]))) return
      const answer = await forward("chat.params", sessionID, { sessionID, agent, model: { id, providerID, limit } })
      if (answer === undefined) told.delete(`model ${sessionID}`)
    }),
    "experimental.session.compacting": safely((input, output) =>
      forward("experimental.session.compacting", input.sessionID, input, output, UNHURRIED),
    ),
  }
}
