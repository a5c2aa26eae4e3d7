/** Replicas whose server's URL leads back to one of them, as that of their balancer does. */
import anyTest, { type TestFn } from 'ava';
import { startBridge } from '../../support/bridge.ts';
import { callHttp } from '../../support/http-call.ts';
import { initialize, POST_HEADERS } from '../../support/legacy-clients.ts';
import { ownPort } from '../../support/own-port.ts';
import { startRedis, WHY_NO_REDIS } from '../../support/redis-server.ts';
import { KEY } from './test-bed.ts';

/** Skipped with the reason where Redis is not installed. */
const test = (WHY_NO_REDIS === undefined ? anyTest.serial : anyTest.serial.skip) as TestFn;
const WHY = WHY_NO_REDIS === undefined ? '' : ` (${WHY_NO_REDIS})`;

test(`a replica recognizes requests of another one that was sent to it${WHY}`, async (t) => {
  const redis = await startRedis();
  t.teardown(() => redis.stop());
  const ports = [await ownPort(), await ownPort()] as const;
  for (const [port, other] of [ports, [ports[1], ports[0]] as const]) {
    const address = ['--port', String(port), '--advertise', `http://127.0.0.1:${port}`];
    const store = ['--store', redis.url.href, '--cluster-key', 'env:TEST_CLUSTER_KEY'];
    const bridge = await startBridge([...address, ...store, `http://127.0.0.1:${other}/mcp`], {
      env: { TEST_CLUSTER_KEY: KEY },
    });
    t.teardown(() => bridge.stop());
  }
  const body = JSON.stringify(initialize());
  const answer = await callHttp({ port: ports[0], method: 'POST', headers: POST_HEADERS, body });
  t.regex(
    await answer.text(),
    /called itself: the URL of one of its servers leads back to it, or to another of its replicas/,
  );
});
