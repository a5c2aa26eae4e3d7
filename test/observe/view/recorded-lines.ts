/** Recordings made by hand, for the tests of what shows them. */
import { parseRecordedLine, type RecordedMessage } from '../../../src/recording/recorded-message.ts';

export const START_MS = Date.parse('2026-11-28T19:30:14.123Z');

type Facts = Partial<Omit<RecordedMessage, 'message' | 'at'>>;

/** Writes lines as a bridge between a modern client and a legacy server does. */
export class RecordedLines {
  readonly lines: string[] = [];
  nowMs = START_MS;
  seq = 0;

  /** Adds a line, 1 ms after the one before. */
  add(side: 'client' | 'server', direction: 'in' | 'out', message: object, facts: Facts = {}): this {
    this.nowMs += 1;
    this.seq += 1;
    const ofClient = { session: 's1', carrier: 'streamable-http', era: 'modern' };
    const ofServer = { session: 'c1', carrier: 'stdio', era: 'legacy' };
    const whole = { jsonrpc: '2.0', ...message };
    const line = {
      at: new Date(this.nowMs).toISOString(),
      seq: this.seq,
      side,
      direction,
      server: 'everything',
      client: 'claude-code',
      ...(side === 'client' ? ofClient : ofServer),
      bytes: Buffer.byteLength(JSON.stringify(whole)),
      ...facts,
      message: whole,
    };
    this.lines.push(JSON.stringify(line));
    return this;
  }

  wait(ms: number): this {
    this.nowMs += ms;
    return this;
  }

  /** Begins a call at both sides. Its ids are `call` for the client, and `b` and the number for the server. */
  request(call: number, method: string, params?: object, facts: Facts = {}): this {
    return this.add('client', 'in', { id: call, method, params }, { call, ...facts }).add(
      'server',
      'out',
      { id: `b${call}`, method, params },
      { call, ...facts },
    );
  }

  /** Ends a call at both sides. @param answer the `result` or `error` */
  answer(call: number, answer: object, facts: Facts = {}): this {
    return this.add('server', 'in', { id: `b${call}`, ...answer }, { call, ...facts }).add(
      'client',
      'out',
      { id: call, ...answer },
      { call, ...facts },
    );
  }

  /** The file that has these lines. */
  get text(): string {
    return this.lines.map((line) => `${line}\n`).join('');
  }
}

export function parse(line: string): RecordedMessage {
  const recorded = parseRecordedLine(line);
  if ('damage' in recorded) throw new Error(`The line ${recorded.damage}.`);
  return recorded;
}
