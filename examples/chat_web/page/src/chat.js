// The server keeps the messages. The page shows what the server keeps, and follows the reply that is coming.
import { Chat } from "@ai-sdk/react";
import {
  DefaultChatTransport,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses as isDecided,
  lastAssistantMessageIsCompleteWithToolCalls as isAnswered,
  readUIMessageStream,
} from "ai";

const id = (location.hash ||= `#${crypto.randomUUID()}`).slice(1);
const api = `/api/chat/${encodeURIComponent(id)}`;

export const chat = new Chat({
  id,
  transport: new DefaultChatTransport({
    // Only what the person says, a question or answers: the server has the rest. `resumeStream` asks
    // `/api/chat/<id>/stream`, as the SDK does by itself.
    prepareSendMessagesRequest: ({ messages }) => {
      const last = messages.at(-1);
      const parts = last.role === "user" ? last.parts : last.parts.filter(isToolUIPart);
      answered = false;
      return { api, body: { message: { ...last, parts } } };
    },
  }),
  sendAutomaticallyWhen: (all) => answered && (isDecided(all) || isAnswered(all)),
  onFinish: () => look(),
});

let answered = false; // whether a call was answered here, and the server hasn't been told

const isIdle = () => chat.status === "ready" || chat.status === "error";
const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const complete = new Map(); // the replies that have ended
let looking = false;
let wanted = false;
let held = null; // the reply as far as it was shown, until its stream has said so much again
let onAway = () => {};

/** A kept reply is what its stream said: it is read as the stream is, so both look the same. */
async function toMessage({ id, ended, chunks }) {
  const key = JSON.stringify([id, ended, chunks.length]); // a reply whose calls are answered goes on
  if (complete.has(key)) return complete.get(key);
  let message = { id, role: "assistant", parts: [] };
  const stream = new ReadableStream({
    start(controller) {
      chunks.forEach((chunk) => controller.enqueue(chunk));
      controller.close();
    },
  });
  for await (message of readUIMessageStream({ message, stream }));
  message = { ...message, metadata: { ...message.metadata, ended } };
  if (ended) complete.set(key, message);
  return message;
}

/** What the server keeps. Asks again until it answers. */
async function load() {
  for (;;) {
    try {
      const { live, messages } = await (await fetch(api)).json();
      onAway(false);
      return { live, messages: await Promise.all(messages.map((one) => (one.chunks ? toMessage(one) : one))) };
    } catch {
      onAway(true);
      await sleep(500);
    }
  }
}

/** Show what the server keeps, and follow the reply that is coming to its end. */
async function look() {
  wanted = true;
  if (looking) return; // it looks again when it is done
  looking = true;
  while (wanted && isIdle()) {
    wanted = false;
    const kept = await load();
    if (!isIdle()) break; // a question was sent meanwhile, and the end of its reply is another look
    chat.messages = kept.messages;
    held = kept.live ? kept.messages.at(-1) : null;
    if (!kept.live) {
      runTools(kept.messages.at(-1));
      continue;
    }
    await chat.resumeStream();
    await sleep(50); // the server may not have written down the end yet
    wanted = true;
  }
  looking = false;
}

/** The messages as the page shows them: a reply whose stream is read again, from its start, doesn't shrink meanwhile. */
export function shown(messages) {
  const last = messages.at(-1);
  if (held && last !== held && size(last) >= size(held)) held = null;
  return held && last?.id === held.id ? [...messages.slice(0, -1), held] : messages;
}
const size = (message) => JSON.stringify(message?.parts ?? []).length;

/** The page's own tools, by name. */
const tools = { get_time_zone: () => Intl.DateTimeFormat().resolvedOptions().timeZone };

/** Whether the reply ended because calls in it wait for an answer. */
export const waits = (message) => message?.role === "assistant" && message.metadata?.ended === "done";

/** Run the page's tools that the last reply asks for. Unlike `onToolCall`, this sees a call that waited through a reload, too. */
function runTools(message) {
  if (!waits(message) || chat.status === "error") return; // what the server refuses isn't said again and again
  for (const { type, state, toolCallId } of message.parts) {
    const tool = type.replace("tool-", "");
    if (state !== "input-available" || !Object.hasOwn(tools, tool)) continue;
    answered = true;
    chat.addToolOutput({ tool, toolCallId, output: tools[tool]() });
  }
}

/** A person's answer to a call that waits for it. When all calls of the reply have one, they are sent. */
export function answer(id, approved, reason) {
  answered = true;
  return chat.addToolApprovalResponse({ id, approved, reason });
}

/** Ask the question, and follow the reply to its end. Returns why the server hasn't taken the question. */
export async function send(message) {
  await chat.sendMessage(message);
  const question = chat.messages.findLast(({ role }) => role === "user");
  const problem = chat.error?.message;
  const kept = await load();
  return kept.messages.some(({ id }) => id === question.id) ? "" : problem;
}

/** For all who read the reply; `chat.stop` would only stop reading. */
export const stop = () => fetch(`${api}/stop`, { method: "POST" }).catch(() => {});

/** Look now, and again whenever the server says that something has changed. `fn` is told whether the server is away. */
export function connect(fn) {
  onAway = fn;
  const changes = new EventSource(`${api}/changes`); // comes back by itself
  changes.onopen = () => chat.clearError();
  changes.onmessage = look;
  changes.onerror = () => fn(true);
  look();
  return () => changes.close();
}
