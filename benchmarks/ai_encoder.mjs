// What a delta costs the AI SDK's own server, from the parts of a reply to server-sent events: CPU time and bytes.
// Runs in tests/clients, where the package is. Prints {"seconds", "bytes"} of a delta: the least of ten runs, after some
// that warm the compiler up.
import { JsonToSseTransformStream, toUIMessageStream } from 'ai';

const deltas = Number(process.argv[2]);
const call = { id: 'call_1', toolName: 'tides' };
const repeated = (count, part) => Array.from({ length: count }, () => part);
const parts = [
  { type: 'start' },
  { type: 'text-start', id: '0' },
  ...repeated(deltas, { type: 'text-delta', id: '0', text: ' word' }),
  { type: 'text-end', id: '0' },
  { type: 'tool-input-start', ...call },
  ...repeated(deltas, { type: 'tool-input-delta', id: 'call_1', delta: '"x", ' }),
  { type: 'tool-input-end', id: 'call_1' },
  { type: 'finish', finishReason: 'tool-calls', totalUsage: {} },
];

async function encoded() {
  const source = new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(part);
      controller.close();
    },
  });
  const encoder = new TextEncoder();
  let bytes = 0;
  for await (const text of toUIMessageStream({ stream: source }).pipeThrough(new JsonToSseTransformStream())) {
    bytes += encoder.encode(text).length;
  }
  return bytes;
}

let [least, bytes] = [Infinity, 0];
for (let run = 0; run < 15; run++) {
  const before = process.cpuUsage();
  bytes = await encoded();
  const { user, system } = process.cpuUsage(before);
  if (run >= 5) least = Math.min(least, (user + system) / 1e6);
}
console.log(JSON.stringify({ seconds: least / (2 * deltas), bytes: bytes / (2 * deltas) }));
