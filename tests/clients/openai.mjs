// Asks a server for chat completions with OpenAI's own client, and says what it ends up with.
// stdin: a line for each request, {"url": "…", "request": {…}, "tool": "what the client's tool says"}; stdout: a line for each.
import OpenAI from 'openai';
import { createInterface } from 'node:readline';

// The pieces as they come, and the completion that the client's helper makes of them.
async function streamed(client, request) {
  const told = { pieces: [], error: null };
  try {
    for await (const chunk of await client.chat.completions.create({ ...request, stream: true })) {
      told.pieces.push(...chunk.choices.map(({ index, delta }) => [index, delta]));
      told.usage = chunk.usage;
    }
    told.completion = await client.chat.completions.stream(request).finalChatCompletion();
  } catch (error) {
    told.error = { name: error.constructor.name, message: error.message, status: error.status ?? null, type: error.type ?? null };
  }
  return told;
}

// The helper that runs the client's tools and asks again.
async function withTools(client, request, says) {
  const given = [];
  const run = args => { given.push(args); return says; };
  const tools = request.tools.map(tool => ({ ...tool, function: { ...tool.function, function: run, parse: JSON.parse } }));
  const runner = client.chat.completions.runTools({ ...request, stream: true, tools });
  return { text: await runner.finalContent(), given };
}

for await (const line of createInterface({ input: process.stdin })) {
  const { url, request, tool } = JSON.parse(line);
  const client = new OpenAI({ baseURL: url, apiKey: 'none', maxRetries: 0 });
  const told = tool ? await withTools(client, request, tool) : await streamed(client, request);
  console.log(JSON.stringify(told));
}
