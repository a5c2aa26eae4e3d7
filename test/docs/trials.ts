/** How each command of the guides is tried. One that stands in a guide and not here fails the tests, and so does the other way round. */

export type Trial =
  /** Started on a free port; the tools that an official client finds. */
  | { readonly kind: 'serves'; readonly tools: RegExp; readonly env?: Readonly<Record<string, string>> }
  /** Run by a shell to its end, as it stands; with a bridge, if it asks one. */
  | {
      readonly kind: 'runs';
      readonly prints: RegExp;
      readonly exitCode?: number;
      /** Options of the bridge that stands for http://127.0.0.1:8000. */
      readonly bridge?: readonly string[];
    }
  /** Its options and values are taken as they are; what it is about is not there to be tried. */
  | { readonly kind: 'accepted' }
  /** Another test runs it. */
  | { readonly kind: 'elsewhere'; readonly test: string }
  | { readonly kind: 'not tried'; readonly reason: string };

const ACCEPTED: Trial = { kind: 'accepted' };
const EVERYTHING = /\becho\b/;
const HOST: Trial = { kind: 'not tried', reason: 'the host is not installed; the snippets of mcp-portage are tested' };
const IMAGE: Trial = { kind: 'elsewhere', test: 'test/image/image.test.ts' };
const EXAMPLES_OF_IMAGE: Trial = { kind: 'elsewhere', test: 'test/image/examples.test.ts' };
const TUNNEL: Trial = { kind: 'not tried', reason: 'it takes an account, or the Internet' };
const BINARY: Trial = { kind: 'elsewhere', test: 'test/binary/binary.test.ts' };
const RETIRING: Trial = { kind: 'elsewhere', test: 'test/docs/retire-http-sse.test.ts' };
const RECORDING: Trial = { kind: 'elsewhere', test: 'test/cli/replay-recorded.test.ts' };
const REPLAY: Trial = { kind: 'elsewhere', test: 'test/cli/replay.test.ts' };
const PINS: Trial = { kind: 'elsewhere', test: 'test/cli/pinned-tools.test.ts' };
const SOCKET: Trial = { kind: 'elsewhere', test: 'test/cli/serve-socket.test.ts' };
const STREAM: Trial = { kind: 'elsewhere', test: 'test/cli/serve-stream.test.ts' };
const GRPC: Trial = { kind: 'elsewhere', test: 'test/cli/serve-grpc.test.ts' };
const MQTT: Trial = { kind: 'elsewhere', test: 'test/cli/mqtt.test.ts' };
const REPLICAS: Trial = { kind: 'elsewhere', test: 'test/replicas/running/guide.test.ts' };
const ONE_ADDRESS: Trial = { kind: 'elsewhere', test: 'test/aggregate/aggregate.test.ts' };
const VIEW: Trial = { kind: 'elsewhere', test: 'test/cli/view.test.ts' };
const MANY: Trial = { kind: 'elsewhere', test: 'test/docs/many-servers.test.ts' };

export const TRIALS: Readonly<Record<string, Trial>> = {
  // ---- serving
  'npx -y mcp-portage --config .mcp.json --aggregate': ONE_ADDRESS,
  'npx -y mcp-portage --config .mcp.json --aggregate=search': ONE_ADDRESS,
  'npx -y mcp-portage connect --config .mcp.json': ONE_ADDRESS,
  'npx -y mcp-portage -- npx -y @modelcontextprotocol/server-everything': { kind: 'serves', tools: EVERYTHING },
  'npx -y mcp-portage --env GITHUB_TOKEN -- docker run -i --rm -e GITHUB_TOKEN ghcr.io/github/github-mcp-server':
    ACCEPTED,
  'npx -y mcp-portage --isolation shared -- node server.js': ACCEPTED,
  'npx -y mcp-portage --watch src -- node src/server.js': { kind: 'elsewhere', test: 'test/cli/watch.test.ts' },
  "npx -y mcp-portage --include-tool 'read_*' --exclude-tool '*_secret' -- npx -y @modelcontextprotocol/server-filesystem .":
    { kind: 'serves', tools: /^(read_\w+,?)+$/ },
  "npx -y mcp-portage --rename-tool read_text_file=read --describe-tool 'read_text_file=Reads one file as text.' -- npx -y @modelcontextprotocol/server-filesystem .":
    { kind: 'serves', tools: /(^|,)read(,|$)/ },
  'mcp-portage --pin-tools pins.json -- npx -y @modelcontextprotocol/server-everything': PINS,
  'mcp-portage pin pins.json': PINS,
  'mcp-portage pin --accept pins.json get-sum': PINS,
  'npx -y mcp-portage serve https://old.example/sse': ACCEPTED,
  'npx -y mcp-portage serve https://new.example/mcp': ACCEPTED,
  'npx -y mcp-portage --config .mcp.json': MANY,
  'npx -y mcp-portage --config ~/.config/Claude/claude_desktop_config.json': MANY,
  'npx -y mcp-portage snippet --for cursor --config ~/.config/Claude/claude_desktop_config.json': MANY,
  'npx -y mcp-portage probe --config ~/.config/Claude/claude_desktop_config.json': MANY,

  // ---- other carriers
  'mcp-portage -- npx -y @modelcontextprotocol/server-everything': { kind: 'serves', tools: EVERYTHING },
  "mcp-portage connect 'mqtt://192.168.1.10/ESP32%20Demo%20Server'": MQTT,
  'mcp-portage serve --user portage --password env:MQTT_PASSWORD mqtts://broker.example.com/site/lamp': ACCEPTED,
  'mcp-portage probe mqtt://192.168.1.10/site/lamp': MQTT,
  'mcp-portage --dial env:BROKER_URL -- npx -y @modelcontextprotocol/server-everything': MQTT,
  'mcp-portage connect wss://tools.example.com/mcp': ACCEPTED,
  'mcp-portage serve --bearer-token-file token wss://tools.example.com/mcp': ACCEPTED,
  "export BROKER_URL='mqtts://portage:secret@broker.example.com/site/tools'": {
    kind: 'not tried',
    reason: 'it sets a variable of the shell',
  },
  "export HUB_URL='wss://hub.example.com/mcp/?token=…'": {
    kind: 'not tried',
    reason: 'it sets a variable of the shell',
  },
  'mcp-portage --dial env:HUB_URL -- python my_device.py': ACCEPTED,

  // ---- several replicas
  'mcp-portage --port 8001 -- npx -y @modelcontextprotocol/server-everything': REPLICAS,
  "redis-server --save '' --maxmemory-policy noeviction": REPLICAS,
  '(umask 077; openssl rand -base64 32 > cluster-key)': REPLICAS,
  'mcp-portage --port 8001 --store redis://127.0.0.1:6379 --advertise http://127.0.0.1:8001 --cluster-key file:cluster-key -- npx -y @modelcontextprotocol/server-everything':
    REPLICAS,
  'mcp-portage --port 8002 --store redis://127.0.0.1:6379 --advertise http://127.0.0.1:8002 --cluster-key file:cluster-key -- npx -y @modelcontextprotocol/server-everything':
    REPLICAS,
  'mcp-portage --port 8003 --store redis://127.0.0.1:6379 --advertise http://127.0.0.1:8003 --cluster-key file:cluster-key -- npx -y @modelcontextprotocol/server-everything':
    REPLICAS,
  "sed 's/:80$/127.0.0.1:8000/; s/10.0.0.5:8000/127.0.0.1:8001/; s/10.0.0.6:8000/127.0.0.1:8002/; s/10.0.0.7:8000/127.0.0.1:8003/' examples/proxies/haproxy-replicas.cfg > haproxy.cfg":
    REPLICAS,
  'haproxy -f haproxy.cfg': REPLICAS,
  'mcp-portage probe http://127.0.0.1:8000/mcp': REPLICAS,
  'mcp-portage top --all http://127.0.0.1:8000': REPLICAS,
  'mcp-portage --host 0.0.0.0 --store rediss://redis.example:6379 --advertise http://10.0.0.5:8000 --cluster-key file:/run/secrets/cluster-key --auth-token file:/run/secrets/token -- npx -y @modelcontextprotocol/server-everything':
    ACCEPTED,
  'kubectl apply -f examples/kubernetes-replicas.yaml': { kind: 'elsewhere', test: 'test/docs/examples.test.ts' },

  // ---- who may call
  'mcp-portage --host 0.0.0.0 --auth-token alice=env:ALICE_TOKEN --auth-token bob=file:/run/secrets/bob -- uvx mcp-server-time':
    ACCEPTED,
  'mcp-portage --base-url https://tools.example.com --auth-issuer https://auth.example.com --auth-scope tools -- uvx mcp-server-time':
    ACCEPTED,
  'mcp-portage --base-url https://tools.example.com --auth-issuer https://auth.example.com --exchange-token --oauth-client-id mcp-portage --oauth-client-key key.pem https://example.com/mcp':
    ACCEPTED,
  'mcp-portage --base-url https://tools.example.com/tools --auth-issuer https://auth.example.com -- uvx mcp-server-time':
    ACCEPTED,
  'mcp-portage --host 0.0.0.0 --tls-cert tls.crt --tls-key tls.key --auth-token env:TOKEN -- uvx mcp-server-time':
    ACCEPTED,
  'mcp-portage --host 0.0.0.0 --auth-token env:TOKEN --status-token env:STATUS_TOKEN -- uvx mcp-server-time': ACCEPTED,

  // ---- clients and remote servers
  'npx -y mcp-portage snippet --for cursor http://127.0.0.1:8000/mcp': {
    kind: 'runs',
    prints: /"url": "http:\/\/127\.0\.0\.1:8000\/mcp"/,
  },
  'claude mcp add --transport http everything http://127.0.0.1:8000/mcp': HOST,
  'claude mcp add example -- npx -y mcp-portage connect https://example.com/mcp': HOST,
  'npx -y mcp-portage connect https://example.com/mcp': ACCEPTED,
  "mcp-portage connect --header 'X-Key: ${SERVICE_KEY}' https://example.com/mcp": ACCEPTED,
  'mcp-portage login https://example.com/mcp': ACCEPTED,
  'mcp-portage connect --oauth-callback http://127.0.0.1:3334/callback https://example.com/mcp': ACCEPTED,
  'mcp-portage login --state-dir /state https://example.com/mcp': ACCEPTED,
  'mcp-portage connect --oauth-idp-issuer https://login.company.example --oauth-idp-client-id portage --oauth-client-id portage-at-server --oauth-secret-file secret https://example.com/mcp':
    { kind: 'elsewhere', test: 'test/cli/company-logins.test.ts' },
  'mcp-portage connect --oauth-grant jwt-bearer --oauth-assertion-file /var/run/secrets/tokens/mcp https://example.com/mcp':
    { kind: 'elsewhere', test: 'test/cli/company-logins.test.ts' },
  'ssh -L 3334:127.0.0.1:3334 host': { kind: 'not tried', reason: 'it takes another machine' },

  // ---- looking
  'npx -y mcp-portage probe http://127.0.0.1:8000/mcp': {
    kind: 'runs',
    bridge: [],
    prints: /Streamable HTTP, modern +yes/,
  },
  'npx -y mcp-portage probe -- npx -y @modelcontextprotocol/server-everything': {
    kind: 'runs',
    prints: /What it speaks\n {2}stdio, legacy +yes/,
  },
  'npx -y mcp-portage probe --json -- npx -y @modelcontextprotocol/server-everything': {
    kind: 'runs',
    prints: /^\{.*"verdict": "usable"/s,
  },
  'mcp-portage view session.jsonl': VIEW,
  'mcp-portage view --errors session.jsonl': VIEW,
  "mcp-portage view --full --method 'tools/*' session.jsonl": VIEW,
  'mcp-portage view --follow session.jsonl': VIEW,
  'mcp-portage view http://127.0.0.1:8000': { kind: 'elsewhere', test: 'test/cli/view-running.test.ts' },
  'mcp-portage top http://127.0.0.1:8000': { kind: 'runs', bridge: [], prints: /mcp-portage/ },
  'mcp-portage --metrics -- npx -y @modelcontextprotocol/server-everything': { kind: 'serves', tools: EVERYTHING },
  'curl http://127.0.0.1:8000/metrics': { kind: 'runs', bridge: ['--metrics'], prints: /^mcp_portage_info\{/m },
  'mcp-portage --audit-file audit.log --audit-required -- uvx mcp-server-time': ACCEPTED,

  'curl -s http://127.0.0.1:8000/readyz': { kind: 'runs', bridge: [], prints: /"status":"ready"/ },
  'journalctl --unit mcp-portage --since \'-15 min\' --output cat | grep -E \'"level":"(warn|error|fatal)"\'': {
    kind: 'not tried',
    reason: 'it takes a service of systemd',
  },

  // ---- retiring HTTP+SSE
  'npx -y mcp-portage serve --usage -- npx -y @modelcontextprotocol/server-everything': RETIRING,
  'npx -y mcp-portage report --url http://127.0.0.1:8000': RETIRING,
  'npx -y mcp-portage serve --usage --sunset 2999-12-31 -- npx -y @modelcontextprotocol/server-everything': RETIRING,
  'curl -si --max-time 2 http://127.0.0.1:8000/sse': RETIRING,
  'npx -y mcp-portage report --since 30d': RETIRING,
  'npx -y mcp-portage serve --usage --no-sse -- npx -y @modelcontextprotocol/server-everything': RETIRING,
  'OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 mcp-portage -- npx -y @modelcontextprotocol/server-everything': {
    kind: 'elsewhere',
    test: 'test/observe/traces/traced-calls.test.ts',
  },

  // ---- sockets
  'mcp-portage serve --socket "$XDG_RUNTIME_DIR/everything.sock" -- npx -y @modelcontextprotocol/server-everything':
    SOCKET,
  'curl --unix-socket "$XDG_RUNTIME_DIR/everything.sock" http://localhost/healthz': SOCKET,
  "mcp-portage connect 'unix:///run/user/1000/everything.sock#/mcp'": SOCKET,
  "mcp-portage serve 'unix:///run/user/1000/everything.sock#/mcp'": SOCKET,
  "mcp-portage probe 'unix:///run/user/1000/everything.sock#/mcp'": SOCKET,

  // ---- gRPC
  'mcp-portage serve --grpc 127.0.0.1:50051 -- npx -y @modelcontextprotocol/server-everything': ACCEPTED,
  'mcp-portage serve --grpc 0.0.0.0:50051 --auth-token alice=env:ALICE_TOKEN --tls-cert cert.pem --tls-key key.pem -- npx -y @modelcontextprotocol/server-everything':
    ACCEPTED,
  'mcp-portage serve grpc://127.0.0.1:50051': GRPC,
  'mcp-portage connect grpcs://tools.example.com:443': ACCEPTED,
  'mcp-portage probe grpc://127.0.0.1:50051': GRPC,

  // ---- byte streams
  'mcp-portage serve --stream tcp://127.0.0.1:9000 -- npx -y @modelcontextprotocol/server-everything': ACCEPTED,
  'mcp-portage serve --stream unix:///run/user/1000/everything.sock -- npx -y @modelcontextprotocol/server-everything':
    ACCEPTED,
  'mcp-portage serve tcp://127.0.0.1:9000': ACCEPTED,
  'mcp-portage connect unix:///run/user/1000/everything.sock': ACCEPTED,
  'mcp-portage probe tcp://127.0.0.1:9000': STREAM,
  'socat UNIX-LISTEN:/run/user/1000/notes.sock,fork EXEC:notes-server': STREAM,

  // ---- deploying
  'docker run --rm -p 127.0.0.1:8000:8000 -e MCP_PORTAGE_ALLOW_ANONYMOUS=true ghcr.io/mcp-portage/mcp-portage -- npx -y @modelcontextprotocol/server-everything':
    IMAGE,
  'docker run --rm --read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges -p 127.0.0.1:8000:8000 …':
    IMAGE,
  'docker compose -f examples/compose.yaml up': EXAMPLES_OF_IMAGE,
  'kubectl apply -f examples/kubernetes-sidecar.yaml': EXAMPLES_OF_IMAGE,
  'scripts/image/build.sh slim mcp-portage': IMAGE,
  'npm run build:binary': BINARY,
  'build/mcp-portage --version': BINARY,
  'npm install --global mcp-portage': { kind: 'not tried', reason: 'it changes the machine' },
  'systemd-analyze verify examples/systemd/mcp-portage.service': {
    kind: 'elsewhere',
    test: 'test/docs/examples.test.ts',
  },
  'systemctl enable --now mcp-portage': { kind: 'not tried', reason: 'it changes the machine' },

  // ---- tunnels
  'cloudflared tunnel --url http://127.0.0.1:8000': TUNNEL,
  'cloudflared tunnel login': TUNNEL,
  'cloudflared tunnel create tools': TUNNEL,
  'cloudflared tunnel route dns tools tools.example.com': TUNNEL,
  'cloudflared tunnel run --url http://127.0.0.1:8000 tools': TUNNEL,
  'ngrok http 8000 --url https://tools.example.com': TUNNEL,
  'mcp-portage --base-url https://tools.example.com --auth-issuer https://auth.example.com -- npx -y @modelcontextprotocol/server-everything':
    { kind: 'elsewhere', test: 'test/docs/tunnels.test.ts' },
  'tunnel-client init --sample sample_mcp_stdio_local --profile tools --tunnel-id tunnel_0123456789abcdef0123456789abcdef --mcp-command "npx -y mcp-portage connect -- npx -y @modelcontextprotocol/server-everything"':
    TUNNEL,
  'tunnel-client doctor --profile tools --explain': TUNNEL,
  'tunnel-client run --profile tools': TUNNEL,
  'npx -y mcp-portage probe https://tools.example.com/mcp': ACCEPTED,

  // ---- recordings
  'npx -y mcp-portage --record session.jsonl -- npx -y @modelcontextprotocol/server-everything': RECORDING,
  'npx -y mcp-portage probe replay:session.jsonl': REPLAY,
  'npx -y mcp-portage replay:session.jsonl': REPLAY,
  'npx -y mcp-portage info': { kind: 'runs', prints: /^ {2}Node +\d+\.\d+\.\d+ /m },

  // ---- developing
  'npm ci': { kind: 'not tried', reason: 'this test runs after it' },
  'npm run check': { kind: 'not tried', reason: 'this test is part of it' },
};
