import { BridgeError } from '../../errors.ts';
import type { ReadFile } from '../../io/bounded-file.ts';
import { type DamagedLine, HIDDEN, parseRecordedLine } from '../../recording/recorded-message.ts';
import { Frame } from '../../wire/frame.ts';
import { LF } from '../../wire/json/ascii.ts';
import { findUniqueMember } from '../../wire/json/outline.ts';
import { scanEnvelope } from '../../wire/scan-envelope.ts';
import { CallCollector, type CollectedCalls } from './collect-calls.ts';

/**
 * Largest recording that is replayed. The messages of the server's side stay in memory, and so do the texts that requests
 * are found by. A bridge begins another file at 100 MB unless it is told otherwise.
 */
export const MAX_RECORDING_BYTES = 256 * 1024 * 1024;
/** Limit of servers whose names an error lists. */
const MAX_NAMES = 20;

export interface RecordingSource {
  readonly file: string;
  /** The recorded server to replay; undefined if the recording has only one. */
  readonly server: string | undefined;
}

export interface Recording extends CollectedCalls {
  readonly source: RecordingSource;
  /** The name of the recorded server. */
  readonly server: string;
  /** What the user should know before clients do. */
  readonly warnings: readonly string[];
}

/** Reads a recording. Throws ERR_CONFIG_RECORDING, with the number of the line if one is damaged. */
export function readRecording(source: RecordingSource, readFile: ReadFile): Recording {
  const bytes = readBytes(source, readFile);
  const warnings: string[] = [];
  const names = new Set<string>();
  const collector = new CallCollector();
  let lineNumber = 0;
  for (let start = 0, end = 0; start < bytes.length; start = end + 1) {
    lineNumber += 1;
    const found = bytes.indexOf(LF, start);
    end = found === -1 ? bytes.length : found;
    const read = readLine(bytes.subarray(start, end));
    if (read === 'empty') continue;
    if ('damage' in read) {
      // A bridge that was killed may have left a line half written.
      if (found !== -1) throw unreadable(source, `line ${lineNumber} ${read.damage}; remove that line`);
      warnings.push(`Line ${lineNumber}, the last one of ${source.file}, ${read.damage} and is skipped.`);
      continue;
    }
    const { facts, message } = read;
    if (facts.side !== 'server') continue;
    if (names.size < MAX_NAMES) names.add(facts.server);
    if (source.server === undefined || source.server === facts.server) collector.add(facts, message());
  }
  const server = chooseServer(source, [...names]);
  const collected = collector.finish();
  if (collected.eras.size === 0) throw unreadable(source, `it has no answer of the server "${server}"`);
  const { hiddenValues } = collected;
  if (hiddenValues > 0) {
    warnings.push(
      `${source.file} hides ${hiddenValues} ${hiddenValues === 1 ? 'value' : 'values'}: a request may have any value there, and answers have "${HIDDEN}" in their place. Record with --record-secrets to keep them.`,
    );
  }
  return { ...collected, source, server, warnings };
}

function readBytes(source: RecordingSource, readFile: ReadFile): Buffer {
  let found: ReturnType<ReadFile>;
  try {
    found = readFile(source.file, MAX_RECORDING_BYTES + 1);
  } catch (thrown) {
    throw unreadable(source, `it cannot be read (${codeOf(thrown)})`);
  }
  if (found.kind !== 'file') throw unreadable(source, `it is ${found.kind === 'directory' ? 'a folder' : 'no file'}`);
  if (found.bytes.length > MAX_RECORDING_BYTES) {
    throw unreadable(source, `it has more than ${MAX_RECORDING_BYTES} bytes; split it between two lines`);
  }
  return Buffer.from(found.bytes.buffer, found.bytes.byteOffset, found.bytes.byteLength);
}

function codeOf(thrown: unknown): string {
  const code = thrown instanceof Error && 'code' in thrown ? thrown.code : undefined;
  return typeof code === 'string' ? code : 'for an unknown reason';
}

function chooseServer(source: RecordingSource, names: readonly string[]): string {
  const [only, ...others] = names;
  if (only === undefined) throw unreadable(source, 'it has no message between a bridge and a server');
  const listed = `${names.map((name) => `"${name}"`).join(', ')}${names.length === MAX_NAMES ? ' and more' : ''}`;
  const { server } = source;
  if (server !== undefined) {
    if (names.includes(server)) return server;
    throw unreadable(source, `it has no server "${server}"; it has ${listed}`);
  }
  if (others.length === 0) return only;
  throw unreadable(source, `it has several servers; name one of ${listed} after a #, as in replay:FILE#NAME`);
}

function unreadable({ file }: RecordingSource, problem: string): BridgeError {
  return new BridgeError('ERR_CONFIG_RECORDING', `The recording ${file} cannot be replayed: ${problem}.`);
}

/** Returns the facts of a line, and a function that reads its message. */
function readLine(line: Buffer) {
  const text = line.toString('utf8');
  if (text.trim() === '') return 'empty';
  const facts = parseRecordedLine(text);
  if ('damage' in facts) return facts;
  // The bytes of the message, since parsing would round large numbers. A copy, which does not keep the whole file.
  const span = findUniqueMember(line, 0, 'message');
  if (span === undefined || span === 'duplicate') return NO_MESSAGE;
  const bytes = Buffer.from(line.subarray(span.start, span.end));
  const envelope = scanEnvelope(bytes);
  return envelope === undefined ? NO_MESSAGE : { facts, message: () => new Frame(bytes, envelope) };
}

const NO_MESSAGE: DamagedLine = { damage: 'has no JSON-RPC message' };
