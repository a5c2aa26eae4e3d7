import type { Protection } from './protection.ts';

const RELAY = { file: 'src/relay/relay.ts' } as const;
const CALL = { file: 'src/relay/call-relay.ts', tests: ['test/relay/call-relay.test.ts'] } as const;

/** One session, one server: each request is answered once, and each message goes where it belongs. */
export const ROUTING: readonly Protection[] = [
  {
    promise: 'a client withdraws only what it has open',
    ...RELAY,
    tests: ['test/relay/relay-cancel.test.ts'],
    code: "return this.#log.debug('client cancelled a request that is not open');",
    without: 'return this.#toServer(frame);',
  },
  {
    promise: 'an answer to what is not open goes nowhere, nor does a second one',
    ...RELAY,
    tests: ['test/relay/relay-routing.test.ts'],
    code: "if (exchange?.state.kind !== 'open') {",
    without: 'if (exchange === undefined) {',
  },
  {
    promise: 'the late answer to a withdrawn call is dropped',
    ...RELAY,
    tests: ['test/relay/relay-cancel.test.ts'],
    title: 'drops the late answer*',
    code: "exchange.cancel('client');\n    this.#exchanges.remove(exchange);",
  },
  {
    promise: 'an id that is in use is refused',
    ...RELAY,
    tests: ['test/relay/relay-routing.test.ts'],
    code: 'if (this.#exchanges.has(exchange.id)) {',
    without: 'if (exchange.id === undefined) {',
  },
  {
    promise: 'only open questions can be answered, each once',
    ...RELAY,
    tests: ['test/relay/relay-questions.test.ts'],
    code: 'frame.id === undefined || !this.#questions.has(frame.id)',
    without: 'frame.id === undefined',
  },
  {
    promise: 'a cancellation reaches the server',
    ...RELAY,
    tests: ['test/relay/relay-cancel.test.ts'],
    code: 'this.#toServer(frame, exchange);\n    this.#peer?.release(exchange);',
    without: 'this.#peer?.release(exchange);',
  },
  {
    promise: 'at the end every open call gets an error',
    ...RELAY,
    tests: ['test/relay/relay-end.test.ts'],
    code: 'for (const exchange of this.#exchanges.all()) this.#fail(exchange, reason);',
  },
  {
    promise: 'a modern server asks nobody anything',
    ...RELAY,
    tests: ['test/relay/relay-modern.test.ts'],
    title: 'a request of the server goes nowhere*',
    code: "#requestFromServer(frame: Frame, known: Exchange | undefined): void {\n    if (this.#era === 'modern') {",
    without:
      '#requestFromServer(frame: Frame, known: Exchange | undefined): void {\n    if (this.#era === undefined) {',
  },
  {
    promise: 'what a modern server says of no open request goes nowhere',
    ...RELAY,
    tests: ['test/relay/relay-modern.test.ts'],
    code: "if (addressee === 'nobody') {",
    without: "if (addressee === 'nobody') return this.#toClient(frame);\n    if (addressee === 'nobody') {",
  },
  {
    promise: 'SEC-06: a client that does not read holds its server back',
    ...RELAY,
    tests: ['test/relay/relay-backpressure.test.ts'],
    code: '!this.#peer.send(frame, exchange)) this.#link?.pause();',
    without: '!this.#peer.send(frame, exchange)) return;',
  },
  {
    promise: 'a message over the limit fails its own call',
    ...RELAY,
    tests: ['test/relay/relay-routing.test.ts'],
    code: 'fault.id === undefined ? this.#exchanges.sole() : this.#exchanges.find(fault.id)',
    without: 'this.#exchanges.sole()',
  },
  {
    promise: 'a client that leaves has withdrawn its modern call',
    ...CALL,
    code: "if (this.#state.kind === 'open') this.#withdraw(this.#state, 'client', CLIENT_LEFT);",
  },
  {
    promise: 'an answer to another request is none',
    ...CALL,
    code: 'known !== exchange && frame.id !== undefined && frame.id !== exchange.id',
    without: 'false',
  },
  {
    promise: 'a modern server that asks on the stream of a call is ignored',
    ...CALL,
    code: "return this.#host.log.warn({ method: frame.method }, 'a modern server asked something; that is ignored');",
    without: 'return void peer.send(frame);',
  },
  {
    promise: 'a call whose connection ends behind another one on it is withdrawn',
    file: 'src/downstream/http-server.ts',
    tests: ['test/downstream/pipelining.test.ts'],
    code: "if (response.socket === null) response.destroy().emit('close');",
    without: 'void response;',
  },
  {
    promise: 'a client that leaves before initialize was answered leaves no session',
    file: 'src/downstream/streamable-session/post-lane.ts',
    tests: ['test/downstream/streamable-session/session.test.ts'],
    title: '*leaves before initialize is answered*',
    code: 'return this.#options.onLost();',
    without: 'return;',
  },
  {
    promise: 'a spare process that talks without a client is stopped',
    file: 'src/relay/link-pool.ts',
    tests: ['test/relay/link-pool.test.ts'],
    code: 'if (this.#early.length >= MAX_EARLY_FRAMES) this.#link?.pause();',
  },
  {
    promise: 'roots that a server asks for without end are limited',
    file: 'src/relay/roots-questions.ts',
    tests: ['test/relay/roots-questions.test.ts'],
    code: 'if (this.#open.size >= MAX_HELD_ROOTS) return reply(errorFrame(0, TOO_MANY));',
  },
  {
    promise: 'an id cannot be open in both eras of a pipe',
    file: 'src/downstream/stdio/modern-conversation.ts',
    tests: ['test/downstream/stdio-eras.test.ts'],
    title: 'an id cannot be open in both eras*',
    code: 'if (this.#options.isTaken(id)) return',
    without: 'if (id === undefined) return',
  },
  {
    promise: 'a client that has not seen the latest questions cannot answer them',
    file: 'src/eras/modern-to-legacy/parked-call.ts',
    tests: ['test/eras/modern-to-legacy/input.test.ts'],
    title: 'a retry of an older round*',
    code: 'if (round < this.#round) observer',
    without: 'if (round < 0) observer',
  },
  {
    promise: 'nobody is asked for what the client did not declare',
    file: 'src/relay/legacy-session.ts',
    tests: ['test/eras/modern-to-legacy/input.test.ts'],
    title: 'ML-13 ML-14*',
    code: "return refuseInput(this.#options.capabilities, method ?? '', params);",
    without: 'return undefined;',
  },
];
