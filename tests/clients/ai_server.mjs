// Replays a recorded reply through the AI SDK's own server, and reads what that writes with the SDK's own client.
// stdin: a line for each reply, {"format": "…", "compatible": bool, "body": "what the provider sent", "tools": {name: {}}};
// stdout: a line for each, {"message": UIMessage | null, "error", "usage", "finishReason"}.
import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogle } from '@ai-sdk/google';
import { createMistral } from '@ai-sdk/mistral';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { jsonSchema, readUIMessageStream, streamText, tool } from 'ai';
import { createInterface } from 'node:readline';

console.warn = () => {};
globalThis.AI_SDK_LOG_WARNINGS = false;

const MODELS = {
  'anthropic-messages': fetch => createAnthropic({ apiKey: 'x', fetch })('claude'),
  gemini: fetch => createGoogle({ apiKey: 'x', fetch })('gemini-2.5-flash'),
  mistral: fetch => createMistral({ apiKey: 'x', fetch })('mistral'),
  'openai-responses': fetch => createOpenAI({ apiKey: 'x', fetch }).responses('gpt-5'),
  'openai-chat': fetch => createOpenAI({ apiKey: 'x', fetch }).chat('gpt-5'),
  'openai-compatible': fetch =>
    createOpenAICompatible({ name: 'other', baseURL: 'http://test.invalid', fetch, includeUsage: true })('model'),
  'openai-completions': fetch => createOpenAI({ apiKey: 'x', fetch }).completion('gpt-3.5-turbo-instruct'),
};

async function serve({ format, body, tools }) {
  const fetch = async () => new Response(body, { headers: { 'content-type': 'text/event-stream' } });
  const told = { message: null, error: null, usage: null, finishReason: null };
  const anything = jsonSchema({ type: 'object' });
  const known = Object.fromEntries(Object.keys(tools).map(name => [name, tool({ inputSchema: anything })]));
  const result = streamText({
    model: MODELS[format](fetch), prompt: 'Well?', tools: known, maxRetries: 0,
    onError: ({ error }) => { told.error ??= String(error?.message ?? error).slice(0, 300); },
  });
  const stream = result.toUIMessageStream({
    sendSources: true, sendReasoning: true, onError: error => String(error?.message ?? error).slice(0, 300),
    messageMetadata: ({ part }) => (part.type === 'finish' ? { usage: part.totalUsage, finishReason: part.finishReason } : undefined),
  });
  const onError = error => { told.error ??= `${error.name}: ${error.message}`.slice(0, 300); };
  for await (const message of readUIMessageStream({ stream, onError })) told.message = message;
  Object.assign(told, { usage: told.message?.metadata?.usage ?? null, finishReason: told.message?.metadata?.finishReason ?? null });
  return told;
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  if (line) process.stdout.write(JSON.stringify(await serve(JSON.parse(line))) + '\n');
}
