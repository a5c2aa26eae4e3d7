/** argv: a server script. Dials it, shakes hands, prints the server's pid and stays until it is killed. */
import { createStdioConnector } from '../../src/upstream/stdio/connector.ts';
import { requestFrame } from '../../src/wire/write-message.ts';
import { createTestDeps } from '../process/collected-log.ts';
import { loneDialer } from '../support/dialers.ts';
import { RecordingServerListener } from './recording-server-listener.ts';

const [script = ''] = process.argv.slice(2);
const dialer = createStdioConnector({
  ...loneDialer(),
  target: { kind: 'command', command: process.execPath, args: [script] },
  child: { cwd: undefined, env: {}, withheldEnv: [], pty: false },
  maxMessageBytes: 1024,
  shutdownGraceMs: 1000,
  deps: createTestDeps().deps,
});
const listener = new RecordingServerListener();
listener.onFrame = (frame) => {
  const { result } = frame.json() as { result: { _meta: { pid: number } } };
  console.log(result._meta.pid);
};
const connection = dialer.connect();
connection.listener = listener;
connection.send(requestFrame(1, 'initialize'));
setInterval(() => undefined, 60_000);
