import type { Protection } from './protection.ts';

const NAMES = { file: 'src/collections/recent-names.ts', tests: ['test/collections/recent-names.test.ts'] } as const;
const EARLY = { file: 'src/relay/shared/early-questions.ts' } as const;
const POOL = { file: 'src/relay/link-pool.ts', tests: ['test/relay/link-pool.test.ts'] } as const;
const TRIAL = {
  file: 'src/upstream/detect/attempts/trial.ts',
  tests: ['test/upstream/detect/attempts/trial.test.ts'],
} as const;
const ROUND = {
  file: 'src/eras/legacy-to-modern/input-round.ts',
  tests: ['test/eras/legacy-to-modern/rounds.test.ts'],
} as const;
const CALL = {
  file: 'src/eras/legacy-to-modern/client-call.ts',
  tests: ['test/eras/legacy-to-modern/rounds.test.ts'],
} as const;
const RESTORED = {
  file: 'src/upstream/streamable-session/restored-state.ts',
  tests: ['test/upstream/streamable-session/restored-state.test.ts'],
} as const;
const METADATA = { file: 'src/mcp/request-metadata.ts', tests: ['test/mcp/request-metadata.test.ts'] } as const;

/** Of what clients and servers say, and the bridge keeps: how much it is, they choose. */
export const KEPT: readonly Protection[] = [
  {
    promise: 'names that a peer chose are limited',
    ...NAMES,
    code: 'this.#known.size <= this.#limits.count && ',
  },
  {
    promise: 'characters of names that a peer chose are limited',
    ...NAMES,
    code: ' && this.#length <= this.#limits.length',
  },
  {
    promise: 'an endless name drives out no other',
    ...NAMES,
    code: 'if (length > this.#limits.length) return;',
  },
  {
    promise: 'completions nobody waits for are limited',
    file: 'src/relay/elicitations.ts',
    tests: ['test/relay/elicitations.test.ts'],
    code: '{ count: 1000, length: 64 * 1024 }',
    without: '{ count: 1e9, length: 1e9 }',
  },
  {
    promise: 'elicitations of a shared server that may be announced as complete are limited',
    file: 'src/relay/shared/server-questions.ts',
    tests: ['test/relay/shared/server-questions.test.ts'],
    code: '{ count: 1000, length: 64 * 1024 }',
    without: '{ count: 1e9, length: 1e9 }',
  },
  {
    promise: 'changes that two streams may tell of are limited',
    file: 'src/eras/legacy-to-modern/recent-changes.ts',
    tests: ['test/eras/legacy-to-modern/recent-changes.test.ts'],
    code: 'length: MAX_RECENT_LENGTH,',
    without: 'length: 1e9,',
  },
  {
    promise: 'ids of events that may be repeated are limited',
    file: 'src/upstream/remote/seen-events.ts',
    tests: ['test/upstream/remote/seen-events.test.ts'],
    code: '{ count: 64, length: 8 * 1024 }',
    without: '{ count: 64, length: 1e9 }',
  },
  {
    promise: 'tools whose output is wrapped are limited',
    file: 'src/eras/legacy-to-modern/legacy-results.ts',
    tests: ['test/eras/legacy-to-modern/legacy-results.test.ts'],
    code: '{ count: 1000, length: 64 * 1024 }',
    without: '{ count: 1e9, length: 1e9 }',
  },
  {
    promise: 'tools that run only as tasks are limited',
    file: 'src/eras/modern-to-legacy/task-tools.ts',
    tests: ['test/eras/modern-to-legacy/task-tools.test.ts'],
    code: '{ count: 1000, length: 64 * 1024 }',
    without: '{ count: 1e9, length: 1e9 }',
  },
  {
    promise: 'tools of a remote server whose headers are remembered are limited',
    file: 'src/upstream/streamable-stateless/tool-headers.ts',
    tests: ['test/upstream/streamable-stateless/tool-headers.test.ts'],
    code: '{ count: 4096, length: 256 * 1024 }',
    without: '{ count: 1e9, length: 256 * 1024, ...{ length: 1e9 } }',
  },
  {
    promise: 'tools whose headers a caller has to repeat are limited',
    file: 'src/downstream/streamable-stateless/listed-tools.ts',
    tests: ['test/downstream/streamable-stateless/listed-tools.test.ts'],
    code: 'tools.set(name, headers, lengthOf({ headers }));',
    without: 'tools.set(name, headers);',
  },
  {
    promise: 'nobody is asked under an id that is too long to be kept',
    file: 'src/relay/questions.ts',
    tests: ['test/relay/relay-questions.test.ts'],
    code: 'TOO_MANY : refusalOfId(id)',
    without: 'TOO_MANY : undefined',
  },
  {
    promise: 'nor by a shared server',
    file: 'src/relay/shared/from-server.ts',
    tests: ['test/relay/shared/shared-questions.test.ts'],
    code: 'refusalOfId(serverId) ?? ',
  },
  {
    promise: 'bytes of early questions of a shared server are limited',
    ...EARLY,
    tests: ['test/relay/shared/shared-questions.test.ts'],
    code: ' && this.#bytes + bytes <= MAX_WAITING_BYTES',
  },
  {
    promise: 'early questions of a modern server are asked at once when they are large',
    file: 'src/eras/legacy-to-modern/open-session.ts',
    tests: ['test/eras/legacy-to-modern/rounds.test.ts'],
    code: 'if (!this.#early.hasRoomFor(length)) this.#early.letGo();',
  },
  {
    promise: 'messages of a spare server are limited',
    ...POOL,
    code: 'this.#early.length < MAX_EARLY_FRAMES && ',
  },
  { promise: 'bytes of a spare server are limited', ...POOL, code: ' && this.#earlyBytes < MAX_EARLY_BYTES' },
  { promise: 'messages of a server that is tried are limited', ...TRIAL, code: 'this.#said.length <= MAX_EARLY && ' },
  { promise: 'bytes of a server that is tried are limited', ...TRIAL, code: ' && this.#saidBytes < MAX_EARLY_BYTES' },
  {
    promise: 'an initialize is limited',
    file: 'src/relay/exchange-table.ts',
    tests: ['test/relay/relay-handshake.test.ts'],
    code: 'requestBytes > MAX_INITIALIZE_BYTES ? INITIALIZE_TOO_LARGE : undefined',
    without: 'undefined',
  },
  {
    promise: 'a session whose initialize was too large does not stay',
    file: 'src/relay/relay.ts',
    tests: ['test/relay/relay-handshake.test.ts'],
    code: 'if (refusal === INITIALIZE_TOO_LARGE) this.#handshakeFailed(refusal);',
  },
  {
    promise: 'of the capabilities of a client at a shared server only is kept that they are declared',
    file: 'src/mcp/client-capabilities.ts',
    tests: ['test/mcp/client-capabilities.test.ts'],
    code: '.map((name) => [name, {}])',
    without: '.map((name) => [name, capabilities?.[name] as object])',
  },
  {
    promise: 'capabilities a legacy server is told are limited',
    file: 'src/relay/legacy-pool.ts',
    tests: ['test/relay/legacy-pool.test.ts'],
    code: 'if (capabilities.key.length > MAX_CAPABILITIES_LENGTH) throw tooManyCapabilities(capabilities.key.length);',
  },
  {
    promise: 'capabilities a modern server is told with each request are limited',
    file: 'src/eras/legacy-to-modern/client-profile.ts',
    tests: ['test/eras/legacy-to-modern/handshake.test.ts'],
    code: 'if (length > MAX_CAPABILITIES_LENGTH) return tooManyCapabilities(length);',
  },
  {
    promise: 'so is what it is told of the client',
    file: 'src/mcp/client-info.ts',
    tests: ['test/eras/legacy-to-modern/handshake.test.ts'],
    code: 'JSON.stringify(info).length <= MAX_INFO_LENGTH',
    without: 'JSON.stringify(info).length >= 0',
  },
  {
    promise: 'large metadata is not kept as objects',
    ...METADATA,
    code: '<= MAX_PARSED_BYTES ? metadata',
    without: '>= 0 ? metadata',
  },
  {
    promise: 'what a legacy server says of itself is limited',
    file: 'src/relay/shared/initialize-result.ts',
    tests: ['test/relay/shared/shared-handshake.test.ts'],
    code: ' && answer.bytes.length <= MAX_INITIALIZE_RESULT_BYTES;',
    without: ';',
  },
  {
    promise: 'what a modern server says of itself is limited',
    file: 'src/eras/legacy-to-modern/shared-discovery.ts',
    tests: ['test/eras/legacy-to-modern/handshake.test.ts'],
    code: 'if (answer.bytes.length > MAX_DISCOVERY_BYTES) return failed(this.#tooLarge(answer.bytes.length));',
  },
  {
    promise: 'of what a remote server said of itself its session keeps what it is compared by',
    ...RESTORED,
    code: 'capabilities: announcingCapabilities(capabilities)',
    without: 'capabilities: capabilities ?? {}',
  },
  {
    promise: 'a session keeps no level that is none',
    ...RESTORED,
    code: 'this.logLevel = name(level);',
    without: 'this.logLevel = level as string;',
  },
  {
    promise: 'answers that wait for others are limited',
    ...ROUND,
    code: 'if (!this.#options.hold(this.#bytes)) return this.#fail(key, NO_ROOM);',
    without: 'this.#options.hold(this.#bytes);',
  },
  {
    promise: 'things asked in one round are limited',
    ...ROUND,
    code: 'if (requests.size > MAX_ASKED_AT_ONCE) return this.#fail(first, TOO_MANY);',
  },
  {
    promise: 'what a modern server wants back is limited',
    file: 'src/eras/legacy-to-modern/call-rounds.ts',
    tests: CALL.tests,
    code: 'if (!this.hold(stateBytes)) return onInputFailed(noRoom(serverName));',
  },
  { promise: 'a call that is over gives back what it held', ...CALL, code: 'this.#rounds?.clear();' },
  { promise: 'a call that becomes a task gives back what it held', ...CALL, code: 'rounds.clear();' },
  {
    promise: 'the id of a modern task is limited',
    file: 'src/eras/legacy-to-modern/client-call.ts',
    tests: ['test/eras/legacy-to-modern/tasks.test.ts'],
    code: ' || taskId.length > MAX_TASK_ID_LENGTH',
  },
  {
    promise: 'questions of a task that were answered are remembered within limits',
    file: 'src/eras/legacy-to-modern/absorbed-task.ts',
    tests: ['test/eras/legacy-to-modern/tasks.test.ts'],
    code: '{ count: 1000, length: 64 * 1024 }',
    without: '{ count: 1e9, length: 1e9 }',
  },
  {
    promise: 'of a legacy task only its status is kept',
    file: 'src/eras/modern-to-legacy/task-tools.ts',
    tests: ['test/eras/modern-to-legacy/hosted-tasks.test.ts'],
    code: 'return keptStatus(readFields(result, STATUS_MEMBERS));',
    without: 'return readPayload(result) ?? {};',
  },
  {
    promise: 'texts in the status of a task are limited',
    file: 'src/eras/modern-to-legacy/task-tools.ts',
    tests: ['test/eras/modern-to-legacy/hosted-tasks.test.ts'],
    code: ' && value.length <= MAX_STATUS_TEXT',
  },
  {
    promise: 'roots are not remembered when they are large',
    file: 'src/relay/roots-questions.ts',
    tests: ['test/relay/roots-questions.test.ts'],
    code: 'const isKept = result.length <= MAX_HELD_ROOTS_BYTES;',
    without: 'const isKept = true;',
  },
  {
    promise: 'ids of visits that are waited for are limited',
    file: 'src/eras/modern-to-legacy/url-elicitations.ts',
    tests: ['test/eras/modern-to-legacy/url-elicitations.test.ts'],
    code: ' && elicitationId.length <= MAX_AWAITED_ID_LENGTH',
  },
  {
    promise: 'requests kept with streams that a remote server leaves open are limited',
    file: 'src/upstream/remote/lingering.ts',
    tests: ['test/upstream/streamable-session/answers.test.ts'],
    code: ' || (length > least && this.#bytes > bytes)',
  },
  {
    promise: 'a response that its server has left open a moment ago is not cut for its size',
    file: 'src/upstream/remote/lingering.ts',
    tests: ['test/upstream/remote/lingering.test.ts'],
    code: 'length > least && ',
  },
  {
    promise: 'nothing of a withdrawn modern call is kept',
    file: 'src/relay/shared-modern/modern-calls.ts',
    tests: ['test/relay/shared-modern/modern-memory.test.ts'],
    code: 'this.#withdrawn.push({ seat: seat.mark, traits, ',
    without: 'this.#withdrawn.push({ seat: seat.mark, traits: call, ',
  },
];
