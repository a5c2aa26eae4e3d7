import { Frame } from '../../src/wire/frame.ts';
import { scanEnvelope, scanStrictEnvelope } from '../../src/wire/scan-envelope.ts';

/** A message as a client wrote it, checked like one of an untrusted client; an object is printed first. */
export function clientFrame(message: string | object): Frame {
  const bytes = bytesOf(message);
  JSON.parse(bytes.toString());
  const envelope = scanStrictEnvelope(bytes);
  if ('fault' in envelope) throw new Error(envelope.fault);
  return new Frame(bytes, envelope);
}

/** A message as a server wrote it, scanned like a line of a server: it need not be JSON all through. */
export function serverFrame(message: string | object): Frame {
  const bytes = bytesOf(message);
  const envelope = scanEnvelope(bytes);
  if (envelope === undefined) throw new Error(`not a message: ${bytes}`);
  return new Frame(bytes, envelope);
}

/** Objects get their `jsonrpc` member. */
function bytesOf(message: string | object): Buffer {
  return Buffer.from(typeof message === 'string' ? message : JSON.stringify({ jsonrpc: '2.0', ...message }));
}
