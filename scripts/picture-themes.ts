/** Colors of the pictures in the documents, which are drawn once for light and once for dark pages. */
export interface Theme {
  readonly text: string;
  readonly faint: string;
  readonly line: string;
  readonly box: string;
  readonly accent: string;
  readonly accentText: string;
  /** Stands out beside the accent, also for those who see few colors. */
  readonly second: string;
  readonly secondText: string;
  readonly bar: string;
  /** Of a terminal. */
  readonly page: string;
  readonly green: string;
  readonly red: string;
  readonly cyan: string;
}

export const THEMES = {
  light: {
    text: '#1f2328',
    faint: '#59636e',
    line: '#8c959f',
    box: '#f6f8fa',
    accent: '#0969da',
    accentText: '#ffffff',
    second: '#bc4c00',
    secondText: '#ffffff',
    bar: '#afb8c1',
    page: '#ffffff',
    green: '#1a7f37',
    red: '#d1242f',
    cyan: '#0969da',
  },
  dark: {
    text: '#f0f6fc',
    faint: '#9198a1',
    line: '#656c76',
    box: '#151b23',
    accent: '#1f6feb',
    accentText: '#ffffff',
    second: '#f0883e',
    secondText: '#0d1117',
    bar: '#656c76',
    page: '#0d1117',
    green: '#3fb950',
    red: '#f85149',
    cyan: '#4493f8',
  },
} as const satisfies Readonly<Record<string, Theme>>;

export type ThemeName = keyof typeof THEMES;
export const THEME_NAMES = ['light', 'dark'] as const satisfies readonly ThemeName[];

export const FONT = 'font-family="-apple-system,BlinkMacSystemFont,\'Segoe UI\',Helvetica,Arial,sans-serif"';

export function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
