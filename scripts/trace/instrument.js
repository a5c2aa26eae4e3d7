/**
 * Node loads src/ through this hook while a trace runs: every function tells the recorder when it is entered and left, and
 * every class when an instance is made. It runs after typescript-hooks.js, on JavaScript whose source map still knows the
 * lines of the TypeScript.
 *
 *     send(frame) {                 send(frame) { const $t = $enter('relay/relay.ts', 80, 'Relay.send'); try {
 *       this.#link.send(frame);  →    this.#link.send(frame);
 *     }                             } finally { $leave($t); } }
 */
import { SourceMap } from 'node:module';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'acorn';

const SOURCES = new URL('../../src/', import.meta.url);
const RECORDER = new URL('./recorder.ts', import.meta.url).href;
const IMPORT =
  `import { defineClass as $class, enter as $enter, leave as $leave, made as $made, ` +
  `resume as $resume, suspend as $suspend } from '${RECORDER}'; `;

/** Called by Node for each module: https://nodejs.org/api/module.html#loadurl-context-nextload */
export async function load(url, context, nextLoad) {
  const loaded = await nextLoad(url, context);
  if (!url.startsWith(SOURCES.href)) return loaded;
  const code = String(loaded.source);
  const file = relative(fileURLToPath(SOURCES), fileURLToPath(url)).replaceAll('\\', '/');
  return { ...loaded, source: IMPORT + instrument(code, file) };
}

function instrument(code, file) {
  const lineOf = sourceLines(code);
  /** In the order of a walk, so that of those at one place the outer one opens first and closes last. */
  const insertions = [];
  const insert = (at, text) => insertions.push({ at, text });
  const about = (node, name) => `${JSON.stringify(file)}, ${lineOf(node.start)}, ${JSON.stringify(name)}`;

  /** @param owner the name of the class or function around the node; @param isInFunction whether `$t` is defined there */
  const walk = (node, parent, { owner, isInFunction }) => {
    if (isFunction(node)) {
      const name = nameOfFunction(node, parent, owner, code);
      const enter = `const $t = $enter(${about(node, name)}); try {`;
      const leave = '} finally { $leave($t); }';
      const isBlock = node.body.type === 'BlockStatement';
      if (isBlock) insert(node.body.start + 1, ` ${enter}`);
      else insert(code.lastIndexOf('=>', node.body.start) + 2, ` { ${enter} return (`);
      walkChildren(node, { owner: name, isInFunction: true });
      if (isBlock) insert(node.body.end - 1, ` ${leave} `);
      else insert(node.end, `); ${leave} }`);
      return;
    }
    if (node.type === 'ClassDeclaration' || node.type === 'ClassExpression') {
      const name = node.id?.name ?? parent.id?.name ?? 'class';
      insert(node.body.start + 1, ` static { $class(this, ${about(node, name)}); } #$made = $made(this);`);
      return walkChildren(node, { owner: name, isInFunction: false });
    }
    const isAwait = node.type === 'AwaitExpression' && isInFunction;
    if (isAwait) insert(node.start, '$resume($t, ');
    if (isAwait) insert(node.argument.start, '$suspend($t, ');
    if (node.type === 'CatchClause' && isInFunction) insert(node.body.start + 1, ' $resume($t);');
    walkChildren(node, { owner, isInFunction });
    if (isAwait) insert(node.end, '))');
  };
  const walkChildren = (node, context) => {
    for (const child of Object.values(node).flat()) if (typeof child?.type === 'string') walk(child, node, context);
  };
  walkChildren(parse(code, { ecmaVersion: 'latest', sourceType: 'module' }), { owner: '', isInFunction: false });
  return applied(insertions, code);
}

const isFunction = ({ type }) =>
  type === 'FunctionDeclaration' || type === 'FunctionExpression' || type === 'ArrowFunctionExpression';

/** What a reader would call it: `Relay.#open`, or for a function that has no name what it is handed to. */
function nameOfFunction(node, parent, owner, code) {
  const textOf = ({ start, end }) => code.slice(start, end);
  const within = (name) => (owner === '' ? name : `${owner} › ${name}`);
  if (node.id) return within(node.id.name);
  switch (parent.type) {
    case 'MethodDefinition':
    case 'PropertyDefinition': {
      const accessor = parent.kind === 'get' || parent.kind === 'set' ? `${parent.kind} ` : '';
      return `${owner}.${accessor}${textOf(parent.key)}`;
    }
    case 'Property':
      return within(textOf(parent.key));
    case 'VariableDeclarator':
      return within(textOf(parent.id));
    case 'AssignmentExpression':
      return within(textOf(parent.left));
    case 'CallExpression':
    case 'NewExpression':
      return within(`callback of ${/[\w$#]+(?:\.[\w$#]+)?$/.exec(textOf(parent.callee))?.[0] ?? 'a call'}`);
    default:
      return within('function');
  }
}

function applied(insertions, code) {
  let text = '';
  let done = 0;
  for (const { at, text: inserted } of insertions.toSorted((one, other) => one.at - other.at)) {
    text += code.slice(done, at) + inserted;
    done = at;
  }
  return text + code.slice(done);
}

/** @returns the line of the TypeScript source that an offset of the code comes from */
function sourceLines(code) {
  const [, encoded] = /\/\/# sourceMappingURL=data:application\/json;base64,(\S+)/.exec(code);
  const map = new SourceMap(JSON.parse(Buffer.from(encoded, 'base64').toString()));
  return (offset) => {
    const before = code.slice(0, offset).split('\n');
    return map.findEntry(before.length - 1, before.at(-1).length).originalLine + 1;
  };
}
