/** A real browser, where the machine has one. */
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import axe from 'axe-core';
import { type Browser, chromium, type Page } from 'playwright-core';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];

/** Undefined: there is none. */
export function findChromium(): string | undefined {
  const { CHROME_PATH, PATH = '' } = process.env;
  const places = PATH.split(delimiter).flatMap((folder) => NAMES.map((name) => join(folder, name)));
  return (CHROME_PATH === undefined ? places : [CHROME_PATH]).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

export function launchChromium(executablePath: string): Promise<Browser> {
  // Chromium refuses to run in its sandbox for root, who runs the tests in containers.
  return chromium.launch({ executablePath, chromiumSandbox: process.getuid?.() !== 0 });
}

/** What axe finds wrong, one line each. */
export async function findBarriers(page: Page): Promise<readonly string[]> {
  // The policy of the page holds for its own scripts, not for what the driver evaluates.
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate(() => (globalThis as unknown as { axe: typeof axe }).axe.run());
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
}
