import type { Protection } from './protection.ts';

const READ = { file: 'src/wire/read-message.ts', tests: ['test/wire/read-message.test.ts'] } as const;
const CHECK = { file: 'src/wire/check-json.ts', tests: ['test/wire/check-json.test.ts'] } as const;
const SCAN = { file: 'src/wire/scan-envelope.ts', tests: ['test/wire/scan-envelope.test.ts'] } as const;
const PAYLOAD = { file: 'src/mcp/payload.ts', tests: ['test/mcp/payload.test.ts'] } as const;
const LOOK_ALIKES = { file: 'src/mcp/look-alikes.ts', tests: ['test/mcp/look-alikes.test.ts'] } as const;

const READER = { file: 'src/mcp/metadata-reader.ts', tests: ['test/mcp/metadata-reader.test.ts'] } as const;

/** What may pass for a message, and that all who read it read the same. */
export const WIRE: readonly Protection[] = [
  {
    promise: 'what a client sends is checked as JSON',
    ...READ,
    code: "if (check === 'invalid') return fault('parse', 'the message is not valid JSON');",
  },
  { promise: 'a message is one line', ...READ, code: 'toOneLine(text);' },
  {
    promise: 'what nests too deep is refused before it is looked at',
    ...CHECK,
    code: "if (depth === maxDepth) return 'too-deep';",
  },
  {
    promise: 'control characters in strings are no JSON',
    file: 'src/wire/string-runs.ts',
    tests: ['test/wire/check-json.test.ts'],
    code: 'ENDS_RUN.fill(1, 0, SPACE);',
  },
  {
    promise: 'a member that occurs twice is refused',
    ...SCAN,
    code: 'if (seen.includes(key)) {',
    without: 'if (seen.length < 0) {',
  },
  {
    promise: 'a message is a request or a response, not both',
    ...SCAN,
    code: "if (seen.includes('method') && isResponse)",
    without: 'if (seen.length < 0)',
  },
  {
    promise: 'the start of a number is not taken for an id',
    ...SCAN,
    code: 'if (valueEnd === -1 || valueEnd === head.length) return;',
    without: 'if (valueEnd === -1) return;',
  },
  {
    promise: 'a payload that nests too deep to be walked is not read',
    ...PAYLOAD,
    code: 'return holdsMoreThan(text, MAX_PARSED_VALUES) || isDeeperThan(text, MAX_DEPTH);',
    without: 'return holdsMoreThan(text, MAX_PARSED_VALUES);',
  },
  {
    promise: 'what is shown of a peer calls nothing of it',
    ...PAYLOAD,
    code: "typeof value === 'string' ? value : (JSON.stringify(value) ?? '')",
    without: 'String(value)',
  },
  {
    promise: 'members that some servers take for others are found',
    ...LOOK_ALIKES,
    code: 'if (name !== undefined && ENVELOPE_KEYS.has(fold(name))) return true;',
  },
  {
    promise: 'an id or token that can be read in two ways is not taken',
    ...LOOK_ALIKES,
    code: "if (likeness === 'look-alike' || found !== undefined) return 'unclear';",
  },
  {
    promise: 'a token that is no text and no number is not taken where servers are shared',
    file: 'src/mcp/correlators.ts',
    tests: ['test/mcp/look-alikes.test.ts'],
    code: "isStringOrNumber(bytes[token.start]) ? token : 'unclear'",
    without: 'token',
  },
  {
    promise: 'a member that occurs twice is found nowhere',
    file: 'src/wire/find-member.ts',
    tests: ['test/mcp/correlators.test.ts', 'test/eras/modern-to-legacy/input.test.ts'],
    code: "if (found !== undefined) return 'duplicate';",
  },
  {
    promise: 'a message that comes byte by byte holds memory in proportion',
    file: 'src/wire/byte-collector.ts',
    tests: ['test/wire/byte-collector.test.ts'],
    code: 'if (part.length >= COPY_BELOW_BYTES) {',
    without: 'if (part.length >= 0) {',
  },
  {
    promise: 'the outline of a message is of a few members, however many it has',
    file: 'src/wire/outline.ts',
    tests: ['test/wire/outline.test.ts'],
    code: 'if (!this.isComplete) return;',
  },
  {
    promise: 'envelopes of a few clients are known by heart, however many there are',
    ...READER,
    code: 'this.#oldest = (this.#oldest + 1) % MAX_KNOWN;',
    without: 'this.#oldest += 1;',
  },
  {
    promise: 'what a _meta that occurs twice says is not known by heart',
    ...READER,
    code: "if (meta === undefined || meta === 'unclear') return",
    without: "if (meta === undefined || meta === 'unclear') return this.#known[0]?.metadata ??",
  },
  {
    promise: 'a comment is no part of its event, however long it is',
    file: 'src/wire/sse-decode.ts',
    tests: ['test/wire/sse-decode.test.ts'],
    title: 'skips a comment that is longer*',
    code: "if (bytes[0] === COLON) return 'comment';",
  },
];
