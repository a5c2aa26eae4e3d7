/** Where client and server speak one era and the connection is the client's own, nothing stands between them. */
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import type { CallContext, UpstreamDialer, UpstreamLink } from '../../src/relay/ports.ts';
import { DuplexConnection } from '../../src/upstream/duplex/connection.ts';
import { Frame } from '../../src/wire/frame.ts';
import { scanStrictEnvelope } from '../../src/wire/scan-envelope.ts';
import { FakeServerListener } from '../support/fake-peers.ts';
import { waitFor } from '../support/wait-for.ts';
import { dialersOf } from './dialers-of.ts';

const SERVER = fileURLToPath(new URL('../fixtures/servers/repeats-lines.js', import.meta.url));
/** All modern requests of one client on a pipe. */
const PIPE: CallContext = { principal: 'stdio', headers: undefined };
const META =
  '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}';

/** Ends with the test. */
async function start(
  t: ExecutionContext,
  verb: string,
  era: string,
): Promise<Pick<UpstreamDialer, 'dial' | 'dialCalls'>> {
  const dialers = await dialersOf(t, [verb, '--', process.execPath, SERVER, era]);
  return dialers.forCaller(undefined);
}

function frameOf(text: string): Frame {
  const bytes = Buffer.from(text);
  const envelope = scanStrictEnvelope(bytes);
  if ('fault' in envelope) throw new Error(envelope.fault);
  return new Frame(bytes, envelope);
}

/** What the server said to this, as it stands on the wire. */
async function ask(link: UpstreamLink, listener: FakeServerListener, text: string): Promise<string> {
  const before = listener.received.length;
  link.send(frameOf(text));
  await waitFor(() => listener.received.length > before, { message: 'the answer' });
  return listener.received[before]?.frame.bytes.toString() ?? '';
}

async function isUntouched(t: ExecutionContext, link: UpstreamLink, listener: FakeServerListener, params: string) {
  const asked = `{ "params":{ "n" : 1.0e+2,"s":"\\u00e9\\/"${params} },"method":"test\\/raw", "id" : 7 ,"jsonrpc":"2.0"}`;
  const came = Buffer.from(asked).toString('base64');
  const said = `{ "result" :{"came":"${came}","n":1.0e+2,"s":"\\u00e9\\/" } ,"id": 7,"jsonrpc":"2.0"}`;
  t.is(await ask(link, listener, asked), said);
}

test('a legacy session of a command passes byte for byte, on the bare link to its process once that is found', async (t) => {
  const dialer = await start(t, 'serve', 'legacy');
  for (const session of ['first', 'second']) {
    const listener = new FakeServerListener();
    const dialed = dialer.dial(listener);
    await ask(
      dialed,
      listener,
      '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}',
    );
    const link = listener.found ?? dialed;
    t.true(link instanceof DuplexConnection, session);
    await isUntouched(t, link, listener, '');
  }
});

test('modern requests of one pipe pass byte for byte, on the bare link to the process once the era is known', async (t) => {
  const dialer = await start(t, 'connect', 'modern');
  for (const pipe of ['first', 'second']) {
    const listener = new FakeServerListener();
    const dialed = dialer.dialCalls(listener, PIPE);
    await isUntouched(t, dialed, listener, `,${META}`);
    t.true((listener.found ?? dialed) instanceof DuplexConnection, pipe);
  }
});
