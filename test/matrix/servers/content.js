/** What the matrix servers offer, whichever SDK they are made with. */

export const INSTRUCTIONS = 'Ask for anything; „alles“ ist da. 🧭';

export const EXTENSIONS = {
  'io.modelcontextprotocol/skills': { directoryRead: true },
  'com.example/matrix': { deep: [1, { b: null }], empty: {} },
};

/** Some of extensions that exist, some that no server knows yet, and some below names that the specification uses. */
const OWN_METHODS = [
  ...['skills/list', 'skills/get', 'resources/directory/read', 'tools/compare', 'tasks/pause', 'server/x'],
  ...['prompts/publish', 'logging/rotate', 'notifications/replay', 'elicitation/list', 'ui/open'],
];

/** @param {string} method */
export const isOwnMethod = (method) => method.startsWith('custom/') || OWN_METHODS.includes(method);

/** Both ends of a page, in a cursor that no transport may take to pieces. */
const CURSOR = /^after (\d+) é"\\\/\u2028=&%$/;
const PAGE_SIZE = 4;

/**
 * One page of a list, as the protocol has it.
 * @template Item
 * @param {readonly Item[]} items
 * @param {string | undefined} cursor
 * @returns {{page: Item[], nextCursor?: string} | undefined} undefined: not a cursor of ours
 */
export function pageOf(items, cursor) {
  const start = cursor === undefined ? 0 : Number(CURSOR.exec(cursor)?.[1]);
  if (Number.isNaN(start)) return undefined;
  const end = start + PAGE_SIZE;
  const page = items.slice(start, end);
  return end < items.length ? { page, nextCursor: `after ${end} é"\\/\u2028=&%` } : { page };
}

export const PROMPTS = ['plain', 'city', 'a', 'b', 'c', 'd', 'e'].map((name) => ({
  name,
  description: `The prompt ${name}`,
  ...(name === 'city' && { arguments: [{ name: 'city', description: 'Where', required: true }] }),
}));

/** @param {string} name @param {Record<string, string>} args */
export function promptMessages(name, { city = 'nowhere' }) {
  const text = name === 'city' ? `What is the weather in ${city}?` : `This is ${name}.`;
  return [{ role: 'user', content: { type: 'text', text } }];
}

export const RESOURCES = Array.from({ length: 10 }, (_, index) => ({
  uri: `test://numbered/${index}`,
  name: `number ${index}`,
  mimeType: 'text/plain',
}));

export const TEMPLATES = [{ uriTemplate: 'test://made/{of}', name: 'made of anything', mimeType: 'text/plain' }];

/** [SEP-1865] as hosts of MCP Apps read it. */
export const VIEW = {
  uri: 'ui://matrix/view',
  mimeType: 'text/html;profile=mcp-app',
  text: '<!doctype html><title>\u2028é</title>',
  _meta: {
    ui: { csp: { connectDomains: ['https://a.example'], frameDomains: [] }, domain: 'x', prefersBorder: false },
  },
};

/** Of the tool `sum`. */
export const SUM_META = { ui: { resourceUri: VIEW.uri, visibility: ['model', 'app'] }, 'example.com/n': [1, null] };

const BYTES = Buffer.from(Array.from({ length: 256 }, (_, index) => index));

/** @param {string} uri @returns {object | undefined} */
export function contentsOf(uri) {
  if (uri === VIEW.uri) return VIEW;
  if (uri === 'test://bytes') return { uri, mimeType: 'application/octet-stream', blob: BYTES.toString('base64') };
  const made = /^test:\/\/made\/(.+)$/.exec(uri)?.[1];
  if (made !== undefined) return { uri, mimeType: 'text/plain', text: `made of ${decodeURIComponent(made)}` };
  const known = RESOURCES.find((resource) => resource.uri === uri);
  return known && { uri, mimeType: known.mimeType, text: `This is ${known.name}.` };
}

const CITIES = ['Paris', 'Parma', 'Porto', 'Prag'];

/** @param {string} typed @param {Record<string, string>} given arguments that were completed before */
export function completionOf(typed, { country }) {
  const values = CITIES.filter((city) => city.startsWith(typed) && (country !== 'Italy' || city === 'Parma'));
  return { values, total: values.length, hasMore: false };
}

/** @param {number} bytes a multiple of 16 */
export const bigText = (bytes) => 'é 16 bytes "x"\n'.repeat(bytes / 16);
