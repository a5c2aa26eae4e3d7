import test from 'ava';
import {
  MAX_RECORD_BYTES,
  RECORDS_PER_KEY,
  RecordOpener,
  RecordSealer,
} from '../../../../src/downstream/cluster/link/records.ts';

const KEY = Buffer.alloc(32, 1);
const PLAINS = ['one', '', 'a longer one', 'x'.repeat(40_000), 'last'].map((text) => Buffer.from(text));

function seal(plains: readonly Buffer[], key = KEY): Buffer[] {
  const sealer = new RecordSealer(key);
  return plains.map((plain) => Buffer.concat(sealer.seal(plain)));
}

interface Opened {
  readonly isWell: boolean;
  readonly plains: readonly string[];
}

function open(pieces: readonly Buffer[], key = KEY): Opened {
  const opener = new RecordOpener(key);
  const plains: string[] = [];
  const isWell = pieces.every((piece) =>
    opener.push(piece, (plain) => {
      plains.push(plain.toString());
      return true;
    }),
  );
  return { isWell, plains };
}

function cut(bytes: Buffer, pieceBytes: number): Buffer[] {
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += pieceBytes) pieces.push(bytes.subarray(at, at + pieceBytes));
  return pieces;
}

test('records open whatever the pieces in which they come', (t) => {
  const bytes = Buffer.concat(seal(PLAINS));
  const all = { isWell: true, plains: PLAINS.map(String) };
  for (const pieceBytes of [1, 2, 3, 5, 1000, 1460, 30_000, bytes.length]) {
    t.deepEqual(open(cut(bytes, pieceBytes)), all, `${pieceBytes} bytes a piece`);
  }
  const few = Buffer.concat(seal(PLAINS.slice(0, 3)));
  for (let at = 0; at <= few.length; at += 1) {
    const split = open([few.subarray(0, at), few.subarray(at)]);
    t.deepEqual(split, { isWell: true, plains: PLAINS.slice(0, 3).map(String) }, `split at ${at}`);
  }
});

test('the largest record opens, and one that says it is larger is not waited for', (t) => {
  const largest = Buffer.alloc(MAX_RECORD_BYTES, 'x');
  t.deepEqual(open(seal([largest])), { isWell: true, plains: [largest.toString()] });
  const length = Buffer.alloc(4);
  length.writeUInt32BE(MAX_RECORD_BYTES + 17, 0);
  t.false(open([length]).isWell);
  length.writeUInt32BE(15, 0);
  t.false(open([length]).isWell, 'shorter than what seals it');
});

test('a record that is changed in any byte does not open, and neither does what follows', (t) => {
  const [first = Buffer.alloc(0), second = Buffer.alloc(0)] = seal([Buffer.from('one'), Buffer.from('two')]);
  for (let at = 0; at < first.length; at += 1) {
    const changed = Buffer.from(first);
    changed[at] = (changed[at] ?? 0) ^ 1;
    t.deepEqual(open([changed, second]).plains, [], `byte ${at}`);
  }
});

test('records that are repeated, left out, reordered, or of another link do not open', (t) => {
  const [first, second, third] = seal(['one', 'two', 'three'].map((text) => Buffer.from(text))) as [
    Buffer,
    Buffer,
    Buffer,
  ];
  t.deepEqual(open([first, first]), { isWell: false, plains: ['one'] });
  t.deepEqual(open([first, third]), { isWell: false, plains: ['one'] });
  t.deepEqual(open([second, first]), { isWell: false, plains: [] });
  t.deepEqual(open([first, second, second]), { isWell: false, plains: ['one', 'two'] });
  t.deepEqual(open([first], Buffer.alloc(32, 2)), { isWell: false, plains: [] });
});

test('nothing of what is sealed can be read', (t) => {
  const [sealed = Buffer.alloc(0)] = seal([Buffer.from('alice@example')]);
  t.false(sealed.includes('alice'));
  const twice = seal([Buffer.from('same'), Buffer.from('same')]);
  t.notDeepEqual(twice[0], twice[1]);
});

test('both ends go on when a key has sealed its number of records', (t) => {
  const sealer = new RecordSealer(KEY);
  const opener = new RecordOpener(KEY);
  let opened = 0;
  for (let number = 0; number < RECORDS_PER_KEY + 3; number += 1) {
    const record = Buffer.concat(sealer.seal(Buffer.from(String(number))));
    const isWell = opener.push(record, (plain) => {
      if (plain.toString() === String(number)) opened += 1;
      return true;
    });
    if (!isWell) break;
  }
  t.is(opened, RECORDS_PER_KEY + 3);
});
