// Reads UI message streams with the AI SDK's own clients, the engine under `useChat`, and says what each ends up with.
// stdin: a line for each stream, {"body": "…", "messages": [UIMessage…], "split": bytes, "sdk": 5 | 6 | 7}, or
// {"frames": ["…"…], "ends": [[how many frames, "what follows them"]…], "sdk"} for one stream that ends in many ways;
// stdout: a line for each. For a stream with `ends` it is a list of what the client shows at each end.
// With "url" in the place of "body", the client asks this server.
// With "answers": [{"id", "approved", "reason"}…] a person answers these approvals behind the stream.
import { createInterface } from 'node:readline';

const HEADERS = { 'content-type': 'text/event-stream', 'x-vercel-ai-ui-message-stream': 'v1' };
const SDKS = { 5: () => import('ai-5'), 6: () => import('ai-6'), 7: () => import('ai') };  // each takes a while

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

async function read({ body, url, messages = [], split, sdk = 7, answers = [] }) {
  const { AbstractChat, DefaultChatTransport, convertToModelMessages, validateUIMessages } = await SDKS[sdk]();
  class Chat extends AbstractChat {}
  const told = { request: null, error: null, data: [], toolCalls: [] };
  const fetch = async (_url, init) => {
    told.request = JSON.parse(init.body);
    return response(body, split);
  };
  const state = new State(messages);
  let made = 0;
  const chat = new Chat({
    id: 'chat', state,
    transport: new DefaultChatTransport(url ? { api: url } : { api: 'http://test.invalid/chat', fetch }),
    generateId: () => `made-${made++}`,
    onError: error => { told.error = `${error.name}: ${error.message}`; },
    onData: part => told.data.push(structuredClone(part)),
    onToolCall: ({ toolCall }) => { told.toolCalls.push(toolCall.toolCallId); },
    onFinish: ({ finishReason, isError }) => { told.finishReason = finishReason ?? null; told.isError = isError; },
  });
  if (messages.length) await chat.sendMessage();
  else await chat.sendMessage({ text: 'Well?' });
  for (const answer of answers) await chat.addToolApprovalResponse(answer);
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

// What a person sees and what the page would run, short enough for one at each event of a long stream.
function shown({ error, status, invalid, toolCalls, message }) {
  const parts = message?.parts ?? [];
  const said = type => parts.filter(part => part.type === type).map(part => part.text).join('');
  const calls = parts.filter(part => 'toolCallId' in part).map(part => ({
    id: part.toolCallId, name: part.toolName ?? part.type.slice('tool-'.length), state: part.state,
    input: part.input ?? null, ours: !part.providerExecuted,
  }));
  const streaming = parts.filter(part => ['streaming', 'input-streaming'].includes(part.state)).length;
  const ended = message?.metadata?.status ?? null;
  return { error, status, invalid, toolCalls, text: said('text'), reasoning: said('reasoning'), calls, streaming, ended };
}

async function readEnds({ frames, ends, sdk }) {
  const answers = [];
  for (const [count, end] of ends) answers.push(shown(await read({ body: frames.slice(0, count).join('') + end, sdk })));
  return answers;
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  if (!line) continue;
  const given = JSON.parse(line);
  process.stdout.write(JSON.stringify(await (given.ends ? readEnds(given) : read(given))) + '\n');
}
