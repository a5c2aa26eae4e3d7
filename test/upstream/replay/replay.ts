import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { createReplayConnector } from '../../../src/upstream/replay/connector.ts';
import { Frame } from '../../../src/wire/frame.ts';
import { scanEnvelope } from '../../../src/wire/scan-envelope.ts';
import { createTestDeps } from '../../process/collected-log.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import type { RecordingScript } from '../../support/recording-script.ts';
import { waitFor } from '../../support/wait-for.ts';
import { RecordingServerListener } from '../recording-server-listener.ts';

export interface ReplayOptions {
  readonly server?: string;
  readonly speed?: number;
}

/** Writes a recording to a file of its own. */
export function writeRecording(t: ExecutionContext, recording: RecordingScript | string | Buffer): string {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-portage-replay-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'session.jsonl');
  writeFileSync(file, typeof recording === 'string' || Buffer.isBuffer(recording) ? recording : recording.text);
  return file;
}

/** Replays a recording, and connects to it. */
export function replay(
  t: ExecutionContext,
  recording: RecordingScript | string | Buffer,
  { server, speed = 0 }: ReplayOptions = {},
) {
  const { deps, entries } = createTestDeps();
  const clock = new FakeClock();
  const file = writeRecording(t, recording);
  const target = { kind: 'replay', file, server } as const;
  const connector = createReplayConnector({ target, speed, deps: { ...deps, clock } });
  t.teardown(() => connector.close());
  return { connector, clock, entries, file, connect: () => new ReplayClient(connector.connect()) };
}

/** The owner of a connection, which sends and gets messages as objects. */
export class ReplayClient {
  readonly listener = new RecordingServerListener();
  readonly connection: ReturnType<ReturnType<typeof createReplayConnector>['connect']>;

  constructor(connection: ReplayClient['connection']) {
    this.connection = connection;
    connection.listener = this.listener;
  }

  send(...messages: readonly (object | string)[]): void {
    for (const message of messages) this.connection.send(frameOf(message));
  }

  /** All messages so far. */
  get messages(): readonly Record<string, unknown>[] {
    return this.listener.frames.map((frame) => frame.json() as Record<string, unknown>);
  }

  /** Sends a request, and resolves with the answer. */
  async ask(request: object | string): Promise<Record<string, unknown>> {
    const frame = frameOf(request);
    this.connection.send(frame);
    return this.listener.answerTo(frame.id ?? '');
  }

  /** Resolves with all messages once there are this many. */
  async received(count: number): Promise<readonly Record<string, unknown>[]> {
    await waitFor(() => (this.messages.length >= count ? true : undefined), {
      message: () => `${count} messages; there are ${JSON.stringify(this.messages)}`,
    });
    return this.messages;
  }
}

function frameOf(message: object | string): Frame {
  const bytes = Buffer.from(typeof message === 'string' ? message : JSON.stringify(message));
  const envelope = scanEnvelope(bytes);
  if (envelope === undefined) throw new Error('no message');
  return new Frame(bytes, envelope);
}

/** Lets everything happen that needs no time. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
