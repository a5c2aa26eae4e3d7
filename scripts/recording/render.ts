/**
 * The recording of the README: a terminal with two tabs, as a picture that CSS moves. It needs no script, and takes its colors
 * from the page around it. Without motion (`prefers-reduced-motion`), it shows the end.
 */
import { escapeXml, THEMES, type ThemeName } from '../picture-themes.ts';
import { COLUMNS, type Scene } from './record.ts';
import { type Line, textOf } from './screen.ts';

const CELL = 7.2;
const LINE = 17;
const BAR = 34;
const MARGIN = 16;
const PROMPT = '$ ';
const WIDTH = 2 * MARGIN + COLUMNS * CELL;

/** How long each part of a scene takes. The last scene stays longest, because it has most to read. */
const TYPING_MS = 1500;
const PAUSE_MS = 500;
const LINE_MS = 60;
const STAY_MS = [3000, 8000] as const;

const USABLE = /(usable after )([\d.]+ m?s)/;

/** Keeps the time of an earlier recording: another time alone is no reason for another picture. */
export function keepTime(scenes: readonly [Scene, Scene], earlier: string): readonly [Scene, Scene] {
  const time = USABLE.exec(textOf(linesOfPicture(earlier)))?.[2];
  if (time === undefined) return scenes;
  const [serving, probing] = scenes;
  const lines = probing.lines.map((line) =>
    USABLE.test(textOf(line))
      ? line.map(({ text, look }) => ({ text: text.replace(/[\d.]+ m?s$/, time), look }))
      : line,
  );
  return [serving, { ...probing, lines }];
}

const linesOfPicture = (picture: string): Line =>
  [...picture.matchAll(/>([^<]+)<\/text>/g)].map(([, text = '']) => ({ text: `${text} `, look: 'plain' }));

export function renderRecording(scenes: readonly [Scene, Scene]): string {
  const rows = 1 + Math.max(...scenes.map(({ lines }) => lines.length));
  const height = BAR + MARGIN + rows * LINE + MARGIN / 2;
  const lengths = scenes.map(
    ({ lines }, index) => TYPING_MS + PAUSE_MS + lines.length * LINE_MS + (STAY_MS[index] ?? 0),
  );
  const total = lengths.reduce((sum, length) => sum + length, 0);
  const moves = scenes.map((scene, index) => {
    const start = lengths.slice(0, index).reduce((sum, length) => sum + length, 0);
    return renderMoves(scene, index, start, start + (lengths[index] ?? 0), total, height);
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${round(WIDTH)}" height="${height}" viewBox="0 0 ${round(WIDTH)} ${height}" role="img">
<title>A recording of two terminals: ${escapeXml(scenes.map(({ command }) => command).join(', then '))}</title>
<style>
svg{${colors('light')}}
@media (prefers-color-scheme:dark){svg{${colors('dark')}}}
text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:var(--text)}
.bold{font-weight:600}.dim{fill:var(--faint)}.green{fill:var(--green)}.red{fill:var(--red)}.cyan{fill:var(--cyan)}
.cover{fill:var(--page);opacity:0}#scene0{visibility:hidden}
@media (prefers-reduced-motion:no-preference){
.cover{opacity:1}
${moves.join('\n')}
}
</style>
<clipPath id="window"><rect x=".5" y=".5" width="${round(WIDTH - 1)}" height="${height - 1}" rx="8"/></clipPath>
<g clip-path="url(#window)">
<rect width="100%" height="100%" fill="var(--page)"/>
<rect width="100%" height="${BAR}" fill="var(--box)"/>
${scenes.map((scene, index) => renderScene(scene, index, scenes, height)).join('\n')}
</g>
<rect x=".5" y=".5" width="${round(WIDTH - 1)}" height="${height - 1}" rx="8" fill="none" stroke="var(--line)"/>
</svg>
`;
}

/** Each scene draws all tabs, since another one is in front. */
function renderScene(scene: Scene, index: number, scenes: readonly Scene[], height: number): string {
  const tab = (COLUMNS * CELL) / 4;
  const tabs = scenes.map(({ name }, at) => {
    const x = MARGIN + at * tab;
    const front =
      at === index
        ? `<path d="M${round(x)} ${BAR}v-20q0 -6 6 -6h${round(tab - 12)}q6 0 6 6v20z" fill="var(--page)"/>`
        : '';
    const look = at === index ? '' : ' class="dim"';
    return `${front}<text x="${round(x + tab / 2)}" y="23" text-anchor="middle"${look}>${escapeXml(name)}</text>`;
  });
  const command: Line = [
    { text: PROMPT, look: 'dim' },
    { text: scene.command, look: 'plain' },
  ];
  const texts = [command, ...scene.lines].map((line, row) => renderLine(line, yOf(row)));
  const covers = [
    `<rect class="cover" id="typed${index}" x="${round(MARGIN + PROMPT.length * CELL)}" y="${BAR + 4}" width="100%" height="${LINE + MARGIN - 4}"/>`,
    `<rect class="cover" id="shown${index}" y="${BAR + MARGIN + LINE + 1}" width="100%" height="${height}"/>`,
  ];
  return `<g id="scene${index}">\n${[...tabs, ...texts, ...covers].filter((text) => text !== '').join('\n')}\n</g>`;
}

const yOf = (row: number): number => BAR + MARGIN + row * LINE + 12;

/** Columns are kept whatever font a machine has, so every word between wide spaces is placed and stretched by itself. */
function renderLine(line: Line, y: number): string {
  let column = 0;
  const words: string[] = [];
  for (const { text, look } of line) {
    for (const { 0: word, index } of text.matchAll(/\S+(?: \S+)*/g)) {
      const name = look === 'plain' ? '' : ` class="${look}"`;
      const x = round(MARGIN + (column + index) * CELL);
      words.push(`<text x="${x}" y="${y}" textLength="${round(word.length * CELL)}"${name}>${escapeXml(word)}</text>`);
    }
    column += text.length;
  }
  return words.join('');
}

/** When a scene is seen, when its command is typed, and when its lines appear, as parts of the whole. */
function renderMoves(scene: Scene, index: number, start: number, end: number, total: number, height: number): string {
  const at = (time: number): string => `${round((100 * time) / total)}%`;
  const typed = start + PAUSE_MS / 2;
  const shown = typed + TYPING_MS + PAUSE_MS / 2;
  const { length } = scene.command;
  const rows = scene.lines.length;
  const seconds = `${round(total / 1000)}s`;
  const before = start === 0 ? '' : '0%{visibility:hidden}';
  const after = end === total ? '' : `${at(end)},100%{visibility:hidden}`;
  return [
    `#scene${index}{animation:scene${index} ${seconds} step-end infinite}`,
    `@keyframes scene${index}{${before}${at(start)}{visibility:visible}${after}}`,
    `#typed${index}{animation:typed${index} ${seconds} infinite}`,
    `@keyframes typed${index}{0%,${at(typed)}{transform:none;animation-timing-function:steps(${length})}${at(typed + TYPING_MS)},100%{transform:translateX(${round(length * CELL)}px)}}`,
    `#shown${index}{animation:shown${index} ${seconds} infinite}`,
    `@keyframes shown${index}{0%,${at(shown)}{transform:none;animation-timing-function:steps(${rows})}${at(shown + rows * LINE_MS)},100%{transform:translateY(${Math.min(rows * LINE, height)}px)}}`,
  ].join('\n');
}

function colors(name: ThemeName): string {
  const { text, faint, line, box, page, green, red, cyan } = THEMES[name];
  return Object.entries({ text, faint, line, box, page, green, red, cyan })
    .map(([key, value]) => `--${key}:${value}`)
    .join(';');
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
