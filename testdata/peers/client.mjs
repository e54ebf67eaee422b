// A client of the TypeScript SDKs, driven by lines of JSON.
//
//   node client.mjs sdk|client stdio|http VERSION COMMAND [ARG …] | URL
//
// sdk is @modelcontextprotocol/sdk, client is @modelcontextprotocol/client, which
// alone speaks 2026-07-28. Each line of standard input is {"tool", "args"}, or
// {"do", "with"} for another method of the client; the answer is {"result"} or
// {"threw"}, and whether the tool publishes an outputSchema. The first line of
// output says what was opened. Over HTTP WRIT_TOKEN is its bearer token. With
// WRIT_ELICITED the client can be asked (elicitation), and that JSON is each answer;
// what it was asked goes to standard error.
import { createInterface } from "node:readline";

const [which, transport, version, ...target] = process.argv.slice(2);
const { WRIT_TOKEN: token, WRIT_ELICITED: elicited } = process.env;
const web = token ? { requestInit: { headers: { Authorization: "Bearer " + token } } } : {};
const capabilities = elicited ? { elicitation: {} } : {};
const answer = async (request) => {
  process.stderr.write(JSON.stringify(request.params) + "\n");
  return JSON.parse(elicited);
};
const info = { name: "typescript-" + which, version: "1" };

async function connect() {
  if (which === "sdk") {
    const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
    const client = new Client(info, { capabilities });
    if (elicited) {
      const { ElicitRequestSchema } = await import("@modelcontextprotocol/sdk/types.js");
      client.setRequestHandler(ElicitRequestSchema, answer);
    }
    if (transport === "stdio") {
      const { StdioClientTransport } = await import("@modelcontextprotocol/sdk/client/stdio.js");
      await client.connect(new StdioClientTransport({ command: target[0], args: target.slice(1), env: process.env }));
    } else {
      const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
      await client.connect(new StreamableHTTPClientTransport(new URL(target[0]), web));
    }
    return client;
  }
  const { Client, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
  const mode = version === "2026-07-28" ? { pin: version } : "legacy";
  const client = new Client(info, { capabilities, versionNegotiation: { mode } });
  if (elicited) client.setRequestHandler("elicitation/create", answer);
  await client.connect(transport === "stdio"
    ? new StdioClientTransport({ command: target[0], args: target.slice(1), env: process.env })
    : new StreamableHTTPClientTransport(new URL(target[0]), web));
  return client;
}

const say = (v) => process.stdout.write(JSON.stringify(v) + "\n");

const client = await connect();
const { tools } = await client.listTools();
const published = new Map(tools.map((t) => [t.name, t.outputSchema !== undefined]));
say({
  version: client.getNegotiatedProtocolVersion?.() ?? client.transport?.protocolVersion ?? client.transport?._protocolVersion ?? null,
  tools: tools.map((t) => t.name),
});
for await (const line of createInterface({ input: process.stdin })) {
  const { tool, args, do: method, with: params } = JSON.parse(line);
  const schema = published.get(tool) ?? false;
  try {
    say({ schema, result: await (method ? client[method](params) : client.callTool({ name: tool, arguments: args })) });
  } catch (e) {
    say({ schema, threw: String(e?.message ?? e), code: e?.code });
  }
}
await client.close();
