/** Where each row of docs/guide/when-things-fail.md is tested, by its first cell. */
export const FAULT_TESTS: Readonly<Record<string, readonly string[]>> = {
  // ---- a server that is started as a command
  'The process crashes': ['test/faults/child.test.ts'],
  'It cannot be started': [
    'test/upstream/stdio/connector.test.ts',
    'test/faults/start.test.ts',
    'test/cli/serve-readiness.test.ts',
    'test/upstream/resilience/trials.test.ts',
  ],
  'It fails five times in a row before it answers': ['test/process/supervisor.test.ts'],
  'A process for one session hangs': ['test/faults/child.test.ts'],
  'A shared process hangs': ['test/faults/child.test.ts'],
  'A call takes long, with progress': ['test/relay/calls.test.ts', 'test/cli/serve-endless-calls.test.ts'],
  'It floods stdout or stderr': ['test/faults/child.test.ts'],
  'It sends too large a message': ['test/upstream/server-messages.test.ts', 'test/faults/connections.test.ts'],
  'It answers twice, or to a call that nobody made': ['test/faults/child.test.ts'],
  'It ignores the end of its input, or leaves processes behind': [
    'test/faults/shutdown.test.ts',
    'test/process/terminate.test.ts',
  ],

  // ---- a remote server
  'It is down, or the name does not resolve': [
    'test/upstream/resilience/trials.test.ts',
    'test/matrix/losing-the-server.test.ts',
  ],
  'The connection breaks during a call over Streamable HTTP': [
    'test/upstream/streamable-session/resume.test.ts',
    'test/faults/network.test.ts',
    'test/matrix/losing-the-server.test.ts',
  ],
  'The connection breaks during a call over HTTP+SSE, WebSocket, gRPC or a byte stream': [
    'test/faults/network.test.ts',
    'test/faults/connections.test.ts',
  ],
  'The broker of a device is gone, or the device loses its power': ['test/faults/broker.test.ts'],
  'Connections break between calls': ['test/faults/network.test.ts', 'test/faults/connections.test.ts'],
  'The network falls silent': ['test/faults/network.test.ts', 'test/faults/connections.test.ts'],
  'It has forgotten its session': ['test/upstream/streamable-session/renewal.test.ts'],
  'It answers with an HTTP error, or not with HTTP': [
    'test/faults/remote-answers.test.ts',
    'test/upstream/streamable-session/bad-answers.test.ts',
    'test/upstream/detect/detection.test.ts',
  ],
  'Its response is too large': ['test/faults/remote-answers.test.ts', 'test/faults/connections.test.ts'],
  'It refuses the credentials': ['test/upstream/streamable-session/bad-answers.test.ts'],

  // ---- a client
  'It vanishes during a call': ['test/matrix/losing-the-client.test.ts'],
  'It leaves without ending its session': ['test/cli/serve-abandoned-sessions.test.ts'],
  'Its connection breaks while it reads a stream': ['test/downstream/streamable-session/resumption.test.ts'],
  'It does not read': ['test/downstream/backpressure.test.ts', 'test/downstream/duplex/greedy-clients.test.ts'],
  'It sends faster than its server reads': ['test/faults/carried-clients.test.ts'],
  'It sends half a request, or garbage': ['test/downstream/slow-clients.test.ts', 'test/faults/stdio-endpoint.test.ts'],
  'So many come that a limit is reached': [
    'test/cli/serve-abandoned-sessions.test.ts',
    'test/relay/sessions/session-registry.test.ts',
  ],
  'The broker at which it finds the server is gone, or refuses mcp-portage': ['test/faults/broker.test.ts'],
  'The client of `connect` ends its output or dies': [
    'test/faults/stdio-endpoint.test.ts',
    'test/bridge/connect-stdio.test.ts',
  ],

  // ---- mcp-portage itself
  'It gets SIGTERM': ['test/faults/shutdown.test.ts', 'test/faults/carried-clients.test.ts'],
  'It crashes, or is killed with SIGKILL': ['test/faults/child.test.ts', 'test/faults/stdio-endpoint.test.ts'],
  'It is started again': ['test/downstream/streamable-session/refusals.test.ts', 'test/http/login/login-store.test.ts'],
  'Its configuration file changes': ['test/cli/reload.test.ts'],
  'Certificates are renewed': ['test/downstream/renewed-certificate.test.ts'],
  'The clock jumps ahead': ['test/faults/clock.test.ts'],

  // ---- disk and memory
  'The audit file cannot be written': ['test/observe/audit/audit-file.test.ts', 'test/cli/serve-observed.test.ts'],
  'The usage cannot be written': ['test/observe/usage/usage-file.test.ts'],
  'A login cannot be kept': ['test/http/login/login-clients.test.ts'],
  'Nobody reads the log': ['test/io/patient-lines.test.ts'],
  'Memory is short': ['test/faults/memory.test.ts', 'test/cli/serve-hostile-clients.test.ts'],

  // ---- replicas and Redis
  'A replica is restarted': ['test/replicas/running/faults.test.ts', 'test/replicas/running/restarts.test.ts'],
  'A replica dies': ['test/replicas/running/killed-replicas.test.ts', 'test/replicas/forwarding/forwarder.test.ts'],
  'One replica cannot reach Redis': [
    'test/replicas/running/stopped-replicas.test.ts',
    'test/replicas/running/faults.test.ts',
  ],
  'Redis is away': ['test/replicas/running/faults.test.ts', 'test/replicas/store/redis/redis-store.test.ts'],
  'Redis is restarted without its data': ['test/replicas/running/faults.test.ts'],
};
