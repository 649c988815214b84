// Reads UI message streams with the AI SDK's own client, the engine under `useChat`, and says what it ends up with.
// stdin: a line for each stream, {"body": "…", "messages": [UIMessage…], "split": bytes}; stdout: a line for each.
import { AbstractChat, DefaultChatTransport, convertToModelMessages, validateUIMessages } from 'ai';
import { createInterface } from 'node:readline';

const HEADERS = { 'content-type': 'text/event-stream', 'x-vercel-ai-ui-message-stream': 'v1' };

class Chat extends AbstractChat {}

class State {
  status = 'ready';
  error = undefined;
  constructor(messages) { this.messages = messages; }
  pushMessage(message) { this.messages = [...this.messages, message]; }
  popMessage() { this.messages = this.messages.slice(0, -1); }
  replaceMessage(index, message) { this.messages = this.messages.with(index, structuredClone(message)); }
  snapshot(value) { return structuredClone(value); }
}

// The body in pieces of `split` bytes, so that characters and frames are cut anywhere.
function response(body, split) {
  const bytes = new TextEncoder().encode(body);
  const size = split || bytes.length || 1;
  const stream = new ReadableStream({
    start(controller) {
      for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.slice(at, at + size));
      controller.close();
    },
  });
  return new Response(stream, { status: 200, headers: HEADERS });
}

async function read({ body, messages = [], split }) {
  const told = { request: null, error: null, data: [], toolCalls: [] };
  const fetch = async (_url, init) => {
    told.request = JSON.parse(init.body);
    return response(body, split);
  };
  const state = new State(messages);
  let made = 0;
  const chat = new Chat({
    id: 'chat', state,
    transport: new DefaultChatTransport({ api: 'http://test.invalid/chat', fetch }),
    generateId: () => `made-${made++}`,
    onError: error => { told.error = `${error.name}: ${error.message}`; },
    onData: part => told.data.push(structuredClone(part)),
    onToolCall: ({ toolCall }) => { told.toolCalls.push(toolCall.toolCallId); },
    onFinish: ({ finishReason, isError }) => { told.finishReason = finishReason ?? null; told.isError = isError; },
  });
  if (messages.length) await chat.sendMessage();
  else await chat.sendMessage({ text: 'Well?' });
  told.status = chat.status;
  told.messages = state.messages;
  const last = state.messages.at(-1);
  told.message = last?.role === 'assistant' ? last : null;
  told.invalid = null;
  if (told.message?.parts.length) {
    try {
      await validateUIMessages({ messages: [told.message] });
      await convertToModelMessages([told.message]);
    } catch (error) { told.invalid = `${error.name}: ${error.message}`.slice(0, 500); }
  }
  return told;
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  if (line) process.stdout.write(JSON.stringify(await read(JSON.parse(line))) + '\n');
}
