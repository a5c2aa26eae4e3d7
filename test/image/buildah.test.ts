/** Where there is no engine that runs containers, Buildah builds the image, and can start a program in it. */
import { execFile, spawnSync } from 'node:child_process';
import { promisify } from 'node:util';
import test from 'ava';
import { VERSION } from '../../src/version.ts';
import { buildImage } from '../support/container.ts';

const SCRATCH_CONTAINER = `mcp-portage-buildah-${process.pid}`;
const isHere = process.platform === 'linux' && spawnSync('buildah', ['info']).status === 0;
const withBuildah = isHere ? test : test.skip;

async function buildah(...args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)('buildah', [...args]);
  return stdout.trim();
}

withBuildah(
  `the image that Buildah builds runs the bridge as its user${isHere ? '' : ' (skipped: buildah does not work here)'}`,
  async (t) => {
    t.timeout(20 * 60_000);
    const image = await buildImage({ program: 'buildah', env: process.env }, 'slim');
    await buildah('from', '--pull-never', '--name', SCRATCH_CONTAINER, image);
    t.teardown(() => spawnSync('buildah', ['rm', SCRATCH_CONTAINER]));
    const run = (...words: readonly string[]) =>
      buildah('run', '--isolation', 'chroot', SCRATCH_CONTAINER, '--', ...words);
    t.is(await run('id', '-u'), '1000');
    t.is(await run('node', '/app/bin/mcp-portage.js', '--version'), VERSION);

    const { Docker } = JSON.parse(await buildah('inspect', '--type', 'image', image));
    t.like(Docker.config, { User: 'node', ExposedPorts: { '8000/tcp': {} } });
    t.deepEqual(Docker.config.Entrypoint.slice(0, 2), ['/usr/bin/tini', '--']);
    t.deepEqual(Docker.config.Healthcheck.Test, ['CMD', 'node', '/app/scripts/healthcheck.js']);
  },
);
