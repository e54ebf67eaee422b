// The first five minutes with Writ, as a program: a client with two servers is connected and works, one
// question is answered with "from now on", the same work passes without one, an id that the model made up
// is refused, and the client's file is put back as it was, byte for byte.
//
//   make build peers
//   testdata/peers/node_modules/.bin/node examples/first-minutes/first-minutes.mjs
//
// The client is a stand-in: it starts what its file names, as Cursor would, and makes the calls it is told.
// The person answers in a terminal of his own: an answer from the client, or from what it started, is not
// heard. `script` (util-linux, or the BSDs') makes that terminal. WRIT_BINARY names the program if it is not
// dist/writ, WRIT_PEERS the directory `make peers` filled if it is not testdata/peers.
import { fork, spawnSync } from "node:child_process";
import { mkdtempSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const repository = join(here, "..", "..");
const writ = process.env.WRIT_BINARY ?? join(repository, "dist", "writ");
const peers = process.env.WRIT_PEERS ?? join(repository, "testdata", "peers");

const require = createRequire(join(peers, "package.json"));
const sdk = (module) => import(pathToFileURL(require.resolve("@modelcontextprotocol/sdk/" + module)));
const { Client } = await sdk("client/index.js");
const { StdioClientTransport } = await sdk("client/stdio.js");

const home = process.argv[2] === "client" ? process.argv[3] : realpathSync(mkdtempSync(join(tmpdir(), "writ-first-")));
const work = join(home, "work");
const file = join(home, ".cursor", "mcp.json");
const env = { ...process.env, HOME: home, XDG_CONFIG_HOME: join(home, ".config"), XDG_STATE_HOME: join(home, ".state") };
const server = (name) => join(peers, "node_modules", "@modelcontextprotocol", name, "dist", "index.js");

const show = (text) => console.log(text.replaceAll(process.execPath, "node").replaceAll(work, "~/work").replaceAll(home, "~").replaceAll(peers, "~/peers").replaceAll(here, "~/examples").replaceAll(writ, "writ")
  .replaceAll(/session s_[^)]*\)/g, "session s_…)").replaceAll(/s_[a-z2-7]{16}/g, "s_…").replaceAll(/until \d\d:\d\d:\d\d, \d+ s from now/g, "until …").replaceAll(/\([^ ()]+, \d{4}-[^)]*Z\)/g, "(you, …)").replaceAll(/[\d.]+ [MG]B/g, "… MB"));
function run(...args) {
  const done = spawnSync(writ, args, { env, encoding: "utf8" });
  return { ...done, text: (done.stdout + done.stderr.replace(/^asking .* …\n/, "")).trimEnd() };
}
function command(...args) {
  const done = run(...args);
  show(`$ writ ${args.join(" ")}\n${done.text}${done.status ? `\n(exit code ${done.status})` : ""}\n`);
}

/** The person at a terminal of his own, which `script` gives him: he waits for the question, looks at it, and answers. */
async function answer(...how) {
  let id;
  for (let n = 0; n < 600 && !id; n++) id = JSON.parse(run("approve", "--json").stdout)[0]?.id;
  const args = ["approve", id, ...how];
  show(`$ writ approve\n${run("approve").text}\n`.replaceAll(id, "ID"));
  const there = spawnSync("script", ["-qec", [writ, ...args].map((a) => `'${a}'`).join(" "), "/dev/null"], { env, encoding: "utf8" });
  show(`$ writ ${args.join(" ")}\n${there.stdout.replaceAll("\r", "").trimEnd()}\n`.replaceAll(id, "ID"));
}

/** The client: a process of its own, which starts what its file names and makes the calls it is told. */
async function client() {
  const clients = {};
  for (const [name, s] of Object.entries(JSON.parse(readFileSync(file, "utf8")).mcpServers)) {
    clients[name] = new Client({ name: "stand-in", version: "1" });
    await clients[name].connect(new StdioClientTransport({ command: s.command, args: s.args, env: { ...env, ...s.env }, stderr: "ignore" }));
    await clients[name].listTools();
  }
  process.on("message", async ({ name, tool, args }) => process.send(await clients[name].callTool({ name: tool, arguments: args })));
  process.on("disconnect", async () => {
    await Promise.all(Object.values(clients).map((c) => c.close()));
    process.exit();
  });
  process.send("ready");
}
const heard = (child) => new Promise((done, broke) => child.once("message", done).once("exit", () => broke(new Error("the client ended"))));
let child;
async function start() {
  child = fork(fileURLToPath(import.meta.url), ["client", home], { env });
  await heard(child);
}
async function stop() {
  if (!child) return;
  const ended = new Promise((done) => child.once("exit", done));
  child.disconnect();
  await ended;
  child = undefined;
}
async function call(name, tool, args) {
  child.send({ name, tool, args });
  const result = await heard(child);
  // A server lists in the order of its file system, which is not the same everywhere.
  const lines = result.content.flatMap((c) => (c.text ?? "").trimEnd().split("\n"));
  show(`  ${name} · ${tool} ${JSON.stringify(args)}\n    ${(tool === "list_directory" ? lines.sort() : lines).join("\n    ")}\n`);
}
const offer = join(work, "offer.txt"), kept = join(work, "kept", "offer.txt");

if (process.argv[2] === "client") await client();
else try {
  mkdirSync(dirname(kept), { recursive: true });
  mkdirSync(dirname(file));
  writeFileSync(offer, "A garden hose, 24.90 EUR, until Friday.\n");
  writeFileSync(file, JSON.stringify({ mcpServers: {
    files: { command: process.execPath, args: [server("server-filesystem"), work] },
    tickets: { command: process.execPath, args: [join(here, "tickets.mjs")], env: { WRIT_PEERS: peers } },
  } }, null, 2) + "\n");
  const before = readFileSync(file);

  command("connect", "cursor", "--yes");

  show("The first conversation. What was listed may be moved, there is a contract for that:\n");
  await start();
  await call("files", "list_directory", { path: work });
  await call("files", "list_directory", { path: dirname(kept) });
  await call("files", "move_file", { source: offer, destination: kept });
  show("For tickets there is none. Nobody has said yet who gives them their ids:\n");
  await call("tickets", "list_tickets", {});
  await call("tickets", "set_state", { id: "T-1041", state: "done" });
  await answer("--yes", "--keep", "ours");
  show("The agent makes the same call again:\n");
  await call("tickets", "set_state", { id: "T-1041", state: "done" });
  await stop();

  show("The next conversation: the same work, and no question.\n");
  await start();
  await call("tickets", "list_tickets", {});
  await call("tickets", "set_state", { id: "T-1042", state: "in_progress" });
  show("A ticket that the model made up:\n");
  await call("tickets", "set_state", { id: "T-2043", state: "done" });
  await answer("--no");
  await call("tickets", "set_state", { id: "T-2043", state: "done" });
  await stop();

  command("grown");
  command("status");
  command("disconnect", "cursor", "--yes");
  show(`~/.cursor/mcp.json is as it was, to the byte: ${before.equals(readFileSync(file))}`);
} finally {
  await stop().catch(() => {});
  rmSync(home, { recursive: true, force: true });
}
