// Asks a fake provider's server with the AI SDK's providers, twice each: for a stream and for a whole body.
// stdin: a line for each provider, {"provider": "…", "url": "its base URL"}; stdout: a line for each, a list of two
// {"text", "calls": [[name, input]…], "usage": [in, out], "reason", "error"}.
import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogleGenerativeAI } from '@ai-sdk/google';
import { createMistral } from '@ai-sdk/mistral';
import { createOpenAI } from '@ai-sdk/openai';
import { generateText, jsonSchema, streamText, tool } from 'ai';
import { createInterface } from 'node:readline';

globalThis.AI_SDK_LOG_WARNINGS = false;

const MODELS = {
  anthropic: baseURL => createAnthropic({ baseURL: `${baseURL}/v1`, apiKey: 'x' })('m'),
  google: baseURL => createGoogleGenerativeAI({ baseURL: `${baseURL}/v1beta`, apiKey: 'x' })('m'),
  mistral: baseURL => createMistral({ baseURL: `${baseURL}/v1`, apiKey: 'x' })('m'),
  'openai.chat': baseURL => createOpenAI({ baseURL, apiKey: 'x' }).chat('m'),
  'openai.responses': baseURL => createOpenAI({ baseURL, apiKey: 'x' }).responses('m'),
};
const inputSchema = jsonSchema({ type: 'object', additionalProperties: true });
const tools = { weather: tool({ inputSchema }), time: tool({ inputSchema }) };

async function told(reply) {
  const { inputTokens, outputTokens } = await reply.usage;
  const calls = (await reply.toolCalls).map(({ toolName, input }) => [toolName, input]);
  return { text: await reply.text, calls, usage: [inputTokens, outputTokens], reason: await reply.finishReason };
}

for await (const line of createInterface({ input: process.stdin })) {
  const { provider, url } = JSON.parse(line);
  const asked = { model: MODELS[provider](url), prompt: 'Well?', tools, maxRetries: 0 };
  const failed = error => ({ error: String(error?.message ?? error) });
  let error;
  const streamed = await told(streamText({ ...asked, onError: found => { error = found.error; } }))
    .catch(found => failed(error ?? found));
  const whole = await generateText(asked).then(told, failed);
  console.log(JSON.stringify([streamed, whole]));
}
