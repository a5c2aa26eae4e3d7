import test from 'ava';
import {
  limitTaskNotification,
  limitToolResult,
  withoutOutputSchemas,
} from '../../../src/mcp/translate/limit-results.ts';
import { serverFrame } from '../../support/frames.ts';
import { schemaFaults } from '../../support/schema.ts';

const MAX = 20;
const answer = (result: string) => serverFrame(`{"jsonrpc":"2.0","id":1,"result":${result}}`);
/** The result of a call as the client gets it. */
const limited = (result: string, method = 'tools/call'): string => {
  const { bytes, payloadStart } = limitToolResult(answer(result), method, MAX);
  return bytes.toString('utf8', payloadStart, bytes.length - 1);
};
const note = (subject: string, full: number, kept = 0) =>
  `[${subject} has ${full} bytes, of which ${kept} are kept: mcp-portage limits results by --max-result-bytes.]`;
const blob = 'QUJD'.repeat(10);
const textBlock = (text: string) => `{"type":"text","text":${JSON.stringify(text)}}`;

interface Case {
  readonly title: string;
  readonly result: string;
  /** Absent: every byte stays. */
  readonly expected?: string;
}

const CASES: readonly Case[] = [
  { title: 'text as long as the limit stays', result: `{"content":[ ${textBlock('x'.repeat(MAX))} ],"n":1e400}` },
  {
    title: 'longer text is cut, and all around it stays',
    result: `{"n":1e400,"content":[{"type":"text" , "text":"${'x'.repeat(21)}","annotations":{"priority":1.0}}],"_meta":{}}`,
    expected: `{"n":1e400,"content":[{"type":"text" , "text":"${'x'.repeat(20)}\\n${note('This text', 21, 20)}","annotations":{"priority":1.0}}],"_meta":{}}`,
  },
  {
    title: 'text is cut between characters',
    result: `{"content":[${textBlock('€'.repeat(7))}]}`,
    expected: `{"content":[{"type":"text","text":"${'€'.repeat(6)}\\n${note('This text', 21, 18)}"}]}`,
  },
  {
    title: 'escapes count as the characters they stand for, and what is kept stays as written',
    result: `{"content":[${textBlock('\n'.repeat(20))},{"type":"text","text":"${'\\u00e9'.repeat(11)}"}]}`,
    expected: `{"content":[${textBlock('\n'.repeat(20))},{"type":"text","text":"${'\\u00e9'.repeat(10)}\\n${note('This text', 22, 20)}"}]}`,
  },
  {
    title: 'each block has the limit for itself',
    result: `{"content":[${[1, 2, 3].map(() => textBlock('x'.repeat(MAX))).join()}]}`,
  },
  {
    title: 'a larger image becomes a text that keeps its annotations',
    result: `{"content":[{"type":"image","data":"${blob}","mimeType":"image/png","annotations":{"audience":["user"]}}]}`,
    expected: `{"content":[{"type":"text","annotations":{"audience":["user"]},"text":"${note('This image in Base64', 40)}"}]}`,
  },
  {
    title: 'a small image and small audio stay',
    result:
      '{"content":[{"type":"image","data":"QQ==","mimeType":"image/png"},{"type":"audio","data":"QQ==","mimeType":"audio/wav"}]}',
  },
  {
    title: 'larger audio becomes a text',
    result: `{"content":[{"type":"audio","data":"${blob}","mimeType":"audio/wav"},${textBlock('y')}]}`,
    expected: `{"content":[{"type":"text","text":"${note('This audio in Base64', 40)}"},${textBlock('y')}]}`,
  },
  {
    title: 'the text of a resource is cut in its place',
    result: `{"content":[{"type":"resource","resource":{"uri":"a:b","text":"${'x'.repeat(30)}","mimeType":"text/plain"}}]}`,
    expected: `{"content":[{"type":"resource","resource":{"uri":"a:b","text":"${'x'.repeat(20)}\\n${note('This text', 30, 20)}","mimeType":"text/plain"}}]}`,
  },
  {
    title: 'a resource with larger bytes becomes a text',
    result: `{"content":[{"type":"resource","resource":{"uri":"a:b","blob":"${blob}"}}]}`,
    expected: `{"content":[{"type":"text","text":"${note('This resource in Base64', 40)}"}]}`,
  },
  {
    title: 'a larger block of another type becomes a text',
    result: `{"content":[{"type":"video","frames":["${blob}"]}]}`,
    expected: `{"content":[{"type":"text","text":"${note('This block', 70)}"}]}`,
  },
  {
    title: 'structured content that is repeated as text goes, and a text says so',
    result: `{"content":[${textBlock('short')}],"structuredContent":{"a":"${'x'.repeat(20)}"}}`,
    expected: `{"content":[${textBlock('short')},${textBlock(note('The structured content', 28))}]}`,
  },
  {
    title: 'structured content that is the only output becomes text, which is cut',
    result: `{"structuredContent":{"a":"${'€'.repeat(20)}"},"content":[]}`,
    expected: `{"content":[${textBlock(`{"a":"€€€€\n${note('The structured content', 68, 18)}`)}]}`,
  },
  {
    title: 'structured content without content becomes content',
    result: `{"structuredContent":[${'1,'.repeat(20)}1]}`,
    expected: `{"content":[${textBlock(`[1,1,1,1,1,1,1,1,1,1\n${note('The structured content', 43, 20)}`)}]}`,
  },
  {
    title: 'structured content as long as the limit stays',
    result: `{"content":[],"structuredContent":{"a":"${'x'.repeat(12)}"}}`,
  },
  { title: 'an error of the tool stays whole', result: `{"content":[${textBlock('x'.repeat(99))}],"isError":true}` },
  {
    title: 'a result that says that it is no error is cut',
    result: `{"isError":false,"content":[${textBlock('x'.repeat(21))}]}`,
    expected: `{"isError":false,"content":[${textBlock(`${'x'.repeat(20)}\n${note('This text', 21, 20)}`)}]}`,
  },
  {
    title: 'questions of a modern server stay whole',
    result: `{"resultType":"input_required","inputRequests":{"a":{"method":"x","params":{"text":"${'x'.repeat(99)}"}}}}`,
  },
  {
    title: 'content that is not as it should be stays',
    result: `{"content":[null,7,{"type":"text","text":7,"x":"${blob}"},{"type":"text","x":"${blob}"},{"type":"image","x":"${blob}"},{"type":"resource","resource":"${blob}"}]}`,
  },
  { title: 'content that is no list stays', result: `{"content":{"type":"text","text":"${blob}"}}` },
  { title: 'a result that is no object stays', result: `["${blob}"]` },
];

for (const { title, result, expected = result } of CASES) {
  test(title, (t) => {
    t.is(limited(result), expected);
    t.is(limited(result, 'tasks/result'), expected);
    t.is(
      limited(`{"status":"completed","result":${result},"ttlMs":1}`, 'tasks/get'),
      `{"status":"completed","result":${expected},"ttlMs":1}`,
    );
    const notification = (outcome: string) =>
      `{"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"a","result":${outcome}}}`;
    t.is(limitTaskNotification(serverFrame(notification(result)), MAX).bytes.toString(), notification(expected));
  });
}

test('what is not the result of a tool stays whole', (t) => {
  const result = `{"content":[${textBlock('x'.repeat(99))}]}`;
  for (const method of ['resources/read', 'prompts/get', 'x/y', 'tasks/list']) t.is(limited(result, method), result);
  const error = serverFrame(`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"${blob}","data":${result}}}`);
  t.is(limitToolResult(error, 'tools/call', MAX), error);
  const progress = serverFrame(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"result":${result}}}`);
  t.is(limitTaskNotification(progress, MAX), progress);
});

test('a failed task keeps its error', (t) => {
  const failed = `{"status":"failed","error":{"code":1,"message":"${blob}"}}`;
  t.is(limited(failed, 'tasks/get'), failed);
});

test('a result that passes is the very same frame', (t) => {
  const frame = answer(`{"content":[${textBlock('x')}],"structuredContent":{}}`);
  t.is(limitToolResult(frame, 'tools/call', MAX), frame);
});

test('a large result is limited as a small one is', (t) => {
  const text = 'x'.repeat(1_000_000);
  const frame = answer(`{"content":[${textBlock(text)},${textBlock('y')}],"structuredContent":{"a":"${text}"}}`);
  const told = limitToolResult(frame, 'tools/call', 500_000).json() as { readonly result: object };
  t.deepEqual(told.result, {
    content: [
      { type: 'text', text: `${text.slice(0, 500_000)}\n${note('This text', 1_000_000, 500_000)}` },
      { type: 'text', text: 'y' },
      { type: 'text', text: note('The structured content', 1_000_008) },
    ],
  });
});

test('a limited result is one that the schemas of all revisions allow', (t) => {
  const result = `{"content":[{"type":"image","data":"${blob}","mimeType":"image/png"}],"structuredContent":{"a":"${blob}"}}`;
  for (const revision of ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'] as const) {
    t.deepEqual(schemaFaults(revision, 'CallToolResult', JSON.parse(limited(result))), []);
  }
});

test('more blocks than are read pass unread', (t) => {
  const result = `{"content":[${Array(20_001)
    .fill(textBlock('x'.repeat(21)))
    .join()}]}`;
  t.is(limited(result), result);
});

test('a list of tools loses output schemas, and nothing else', (t) => {
  const list = (schema: string) =>
    `{"tools":[{"name":"a","inputSchema":{"outputSchema":1.0}${schema}, "x":1},{"name":"b"},7],"nextCursor":"c"}`;
  const { bytes, payloadStart } = withoutOutputSchemas(answer(list(',"outputSchema":{"type":"object"}')));
  t.is(bytes.toString('utf8', payloadStart, bytes.length - 1), list(''));
  const same = answer(list(''));
  t.is(withoutOutputSchemas(same), same);
  const error = serverFrame('{"jsonrpc":"2.0","id":1,"error":{"tools":[{"outputSchema":1}]}}');
  t.is(withoutOutputSchemas(error), error);
});
