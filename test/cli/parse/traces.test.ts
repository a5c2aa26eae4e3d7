import test from 'ava';
import { parseTraces } from '../../../src/cli/parse/traces.ts';

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };
const OFF = { config: undefined, warnings: [] };

const ON: Readonly<Record<string, readonly [Readonly<Record<string, string>>, string]>> = {
  'an endpoint': [ENDPOINT, 'http/protobuf'],
  'an endpoint for traces alone': [
    { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://collector/v1/traces' },
    'http/protobuf',
  ],
  'the exporter by its name, whose endpoint the SDK knows': [{ OTEL_TRACES_EXPORTER: 'otlp' }, 'http/protobuf'],
  'a protocol': [{ ...ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' }, 'http/json'],
  'a protocol for traces alone, which comes first': [
    { ...ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc', OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json' },
    'http/json',
  ],
  'one exporter of several': [{ ...ENDPOINT, OTEL_TRACES_EXPORTER: 'console, otlp' }, 'http/protobuf'],
  'an SDK that is not disabled': [{ ...ENDPOINT, OTEL_SDK_DISABLED: 'false' }, 'http/protobuf'],
};

for (const [what, [env, protocol]] of Object.entries(ON)) {
  test(`calls are traced with ${what}`, (t) => {
    t.deepEqual(parseTraces(env), { config: { protocol: protocol as 'http/json' }, warnings: [] });
  });
}

test('nothing is traced, and nothing said, where nobody asks for it', (t) => {
  t.deepEqual(parseTraces({}), OFF);
  t.deepEqual(parseTraces({ OTEL_EXPORTER_OTLP_ENDPOINT: ' ' }), OFF);
  t.deepEqual(parseTraces({ OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'http://collector' }), OFF);
  t.deepEqual(parseTraces({ OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }), OFF);
  t.deepEqual(parseTraces({ ...ENDPOINT, OTEL_SDK_DISABLED: 'TRUE' }), OFF);
  t.deepEqual(parseTraces({ ...ENDPOINT, OTEL_TRACES_EXPORTER: 'none' }), OFF);
});

const WARNED: Readonly<Record<string, readonly [Readonly<Record<string, string>>, RegExp]>> = {
  'grpc, which needs another library': [
    { ...ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' },
    /^calls are not traced: OTEL_EXPORTER_OTLP_PROTOCOL names grpc; http\/protobuf and http\/json are supported/,
  ],
  'a protocol that nobody knows': [
    { ...ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'pigeon' },
    /OTEL_EXPORTER_OTLP_TRACES_PROTOCOL names an unknown protocol/,
  ],
  'an exporter that would write to stdout': [
    { ...ENDPOINT, OTEL_TRACES_EXPORTER: 'console' },
    /OTEL_TRACES_EXPORTER names an exporter that mcp-portage does not have; it has otlp/,
  ],
  'an endpoint that is no URL': [
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'user:hunter2@collector' },
    /OTEL_EXPORTER_OTLP_ENDPOINT is no URL/,
  ],
};

for (const [what, [env, warning]] of Object.entries(WARNED)) {
  test(`${what} is a warning, and no reason not to start`, (t) => {
    const { config, warnings } = parseTraces(env);
    t.is(config, undefined);
    t.is(warnings.length, 1);
    t.regex(warnings[0] ?? '', warning);
    t.false((warnings[0] ?? '').includes('hunter2'));
  });
}
