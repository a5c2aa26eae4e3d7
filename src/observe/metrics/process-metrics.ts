import { setImmediate as turn } from 'node:timers/promises';
import type * as Prom from 'prom-client';
import { type Family, writeLabels, writeSample } from './families.ts';

/**
 * The usual metrics of a process on Node: memory, processor time, event loop, garbage collection. Each is taken in a turn of
 * its own, for some look at every file and timer that the process has open.
 */
export function createProcessMetrics(prom: typeof Prom): readonly Family[] {
  const register = new prom.Registry();
  prom.collectDefaultMetrics({ register });
  return register.getMetricsAsArray().flatMap(({ name, help, type }) => {
    const metric = register.getSingleMetric(name);
    return metric === undefined ? [] : [{ name, help, type: `${type}`, series: () => takeSeries(name, metric) }];
  });
}

async function takeSeries(name: string, metric: Prom.Metric): Promise<Iterable<string>> {
  await turn();
  const { values } = await metric.get();
  return (values as readonly Sample[]).map(({ labels, value, metricName = name }) =>
    writeSample(metricName, writeLabels(labels), value),
  );
}

interface Sample {
  readonly labels: Partial<Record<string, string | number>>;
  readonly value: number;
  /** Of a line that is one of several of its metric. */
  readonly metricName?: string;
}
