// Reads replies with the AI SDK's providers for OpenAI (Responses) and Anthropic, and says what each ends up with.
// stdin: a line for each reply, {"format": "…", "frames": ["…"…], "ends": [[how many frames, "what follows them"]…],
// "tools": ["…"…], "then": "what the model says to the tools' results"}; stdout: a line for each, a list with
// {"model", "loop"} for each end: what the provider makes of the stream, and what a loop of tools does with it.
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { isStepCount, jsonSchema, streamText, tool } from 'ai';
import { createInterface } from 'node:readline';

globalThis.AI_SDK_LOG_WARNINGS = false;

const MODELS = {
  'openai-responses': fetch => createOpenAI({ apiKey: 'x', fetch })('gpt-5'),
  'anthropic-messages': fetch => createAnthropic({ apiKey: 'x', fetch })('claude'),
};
const ANYTHING = { type: 'object', additionalProperties: true };
// Else OpenAI's provider leaves out what it thinks the server has stored, and sends only its ids.
const STATELESS = { openai: { store: false } };

const said = error => String(error?.message ?? error?.response?.error?.message ?? error).slice(0, 300);

// The bodies in turn, and each request that asked for one.
function answering(bodies, requests) {
  return async (_url, init) => {
    requests.push(JSON.parse(init.body));
    return new Response(bodies[requests.length - 1], { headers: { 'content-type': 'text/event-stream' } });
  };
}

// What the provider makes of the stream.
async function read(format, body, tools) {
  const told = { text: '', reasoning: '', calls: [], open: [], results: 0, sources: 0, other: [], finish: null, errors: [] };
  const open = new Map();
  const summaries = new Set();  // of a conversation that Anthropic has compacted: no text of the reply
  try {
    const model = MODELS[format](answering([body], []));
    const { stream } = await model.doStream({
      prompt: [{ role: 'user', content: [{ type: 'text', text: 'Well?' }] }],
      tools: tools.map(name => ({ type: 'function', name, inputSchema: ANYTHING })), providerOptions: STATELESS,
    });
    for await (const part of stream) {
      if (part.type.endsWith('-start') && part.id) open.set(part.id, part.type);
      else if (part.type.endsWith('-end') && part.id) open.delete(part.id);
      if (part.providerMetadata?.anthropic?.type === 'compaction') summaries.add(part.id);
      if (part.type === 'text-delta') told.text += summaries.has(part.id) ? '' : part.delta;
      else if (part.type === 'reasoning-delta') told.reasoning += part.delta;
      else if (part.type === 'tool-call') {
        told.calls.push({ id: part.toolCallId, name: part.toolName, input: part.input, ours: !part.providerExecuted });
      } else if (part.type === 'tool-result') told.results += 1;
      else if (part.type === 'source') told.sources += 1;
      else if (part.type === 'error') told.errors.push(said(part.error));
      else if (part.type === 'finish') told.finish = { ...part.finishReason, usage: part.usage };
      else if (part.type === 'custom' || part.type === 'file') told.other.push(part.kind ?? part.mediaType);
    }
  } catch (error) { told.errors.push(said(error)); }
  told.open = [...open.values()];
  return told;
}

// A client with tools asks, runs what it is asked to run, and asks again.
async function loop(format, body, tools, then) {
  const told = { text: '', ran: [], steps: 0, finishReason: null, errors: [], results: null };
  const requests = [];
  const run = name => tool({
    inputSchema: jsonSchema(ANYTHING),
    execute: (input, { toolCallId }) => { told.ran.push({ id: toolCallId, name, input }); return 'seen'; },
  });
  try {
    const result = streamText({
      model: MODELS[format](answering([body, then], requests)), prompt: 'Well?', maxRetries: 0, stopWhen: isStepCount(2),
      providerOptions: STATELESS,
      tools: Object.fromEntries(tools.map(name => [name, run(name)])), onError: ({ error }) => { told.errors.push(said(error)); },
    });
    for await (const part of result.fullStream) if (part.type === 'text-delta') told.text += part.text;
    told.steps = (await result.steps).length;
    told.finishReason = await result.finishReason;
  } catch (error) { told.errors.push(said(error)); }
  told.asked = requests.length;
  told.back = requests[1] ?? null;
  return told;
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  if (!line) continue;
  const { format, frames, ends, tools, then } = JSON.parse(line);
  const answers = [];
  for (const [count, end] of ends) {
    const body = frames.slice(0, count).join('') + end;
    answers.push({ model: await read(format, body, tools), loop: await loop(format, body, tools, then) });
  }
  process.stdout.write(JSON.stringify(answers) + '\n');
}
