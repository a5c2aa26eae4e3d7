import test from 'ava';
import { createObservation } from '../../../src/bridge/observing/observation.ts';
import { createLooking } from '../../../src/bridge/observing/status.ts';
import { createTestDeps } from '../../process/collected-log.ts';
import { configOf } from '../config-of.ts';

/** What a bridge with these options observes. */
async function observationOf(...options: string[]) {
  const { listener, observation: config } = configOf(...options, '--', 'server');
  if (listener.kind !== 'http') throw new Error('it serves no addresses');
  const deps = { ...createTestDeps().deps, observers: [] };
  const inspect = () => {
    throw new Error('nobody looks');
  };
  const request = { config, listener, inspect, replica: undefined, deps };
  const look: Parameters<typeof createObservation>[0]['look'] = (counted) => createLooking(request, counted);
  return createObservation({ config, clients: 'several', sunset: undefined, look, deps });
}

test('servers are observed for the status page, and their lines of stderr are kept for nobody else', async (t) => {
  t.true((await observationOf('--port', '0')).observeServer !== undefined);
  t.is((await observationOf('--port', '0', '--no-status')).observeServer, undefined);
  t.is((await observationOf('--port', '0', '--no-status', '--metrics')).observeServer, undefined);
  const closed = await observationOf('--port', '0', '--host', '0.0.0.0', '--allow-anonymous');
  t.is(closed.observeServer, undefined, 'nobody may look at a bridge that other machines reach, without a token');
});
