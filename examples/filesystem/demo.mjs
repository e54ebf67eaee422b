// What the filesystem contracts let pass, shown over one connection.
//
//   make build peers
//   testdata/peers/node_modules/.bin/node examples/filesystem/demo.mjs
//
// It makes a directory with a few files, starts `writ run` with policy.yaml of
// this directory in front of server-filesystem, speaks to it with the client of
// the TypeScript SDK, prints the outcome of each call and has the log verified.
// WRIT_BINARY names the program if it is not dist/writ, WRIT_PEERS the directory
// `make peers` filled if it is not testdata/peers.
import { execFileSync } from "node:child_process";
import { mkdtempSync, mkdirSync, realpathSync, rmSync, writeFileSync } from "node:fs";
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

const work = realpathSync(mkdtempSync(join(tmpdir(), "writ-demo-")));
const inbox = join(work, "inbox");
const state = join(work, "state");

/** The outcome of one call, for a person. */
function outcome(tool, result) {
  const said = result._meta?.["io.github.writ-project/outcome"];
  if (said?.rejection) {
    const why = said.rejection.failures.map((f) => `\n      ${f.pointer} ${f.reason}: ${f.need}`);
    return `refused: ${said.rejection.code}${why.join("")}`;
  }
  // A server lists in the order of its file system, which is not the same everywhere.
  const lines = result.content.flatMap((c) => (c.text ?? "").split("\n"));
  const text = (tool === "list_directory" ? lines.sort() : lines).join("\n      ");
  if (result.isError) return "the server itself refused: " + text;
  const evidence = result._meta?.["io.github.writ-project/evidence"];
  const worth = evidence?.admissible ? `evidence ${evidence.id.split("/")[1]}` : "no evidence";
  return `accepted, ${worth}\n      ${text}`;
}

try {
  mkdirSync(join(inbox, "archive"), { recursive: true });
  writeFileSync(join(inbox, "offer.txt"), "offer\n");
  writeFileSync(join(inbox, "notes.txt"), "notes\n");
  writeFileSync(join(inbox, "archive", "old.txt"), "old\n");

  const client = new Client({ name: "demo", version: "1" });
  await client.connect(new StdioClientTransport({
    command: writ,
    args: ["run", "--policy", join(here, "policy.yaml"), "--state", state, "--",
      process.execPath, join(peers, "node_modules", "@modelcontextprotocol", "server-filesystem", "dist", "index.js"), inbox],
  }));
  await client.listTools();

  const show = (text) => console.log(text.replaceAll(work, ""));
  async function call(tool, args) {
    const result = await client.callTool({ name: tool, arguments: args });
    show(`  ${tool} ${JSON.stringify(args)}\n   -> ${outcome(tool, result)}\n`);
  }
  const at = (...names) => join(inbox, ...names);
  const move = (source, destination) => call("move_file", { source, destination });

  show("Nothing was read yet:");
  await move(at("offer.txt"), at("archive", "offer.txt"));

  show("What is listed becomes evidence:");
  await call("list_directory", { path: inbox });
  await call("list_directory", { path: at("archive") });

  show("Invented paths:");
  await move(at("invented.txt"), at("archive", "invented.txt"));
  await move(at("offer.txt"), at("elsewhere", "offer.txt"));
  await call("write_file", { path: at("invented.txt"), content: "text\n" });

  show("A path that only an error repeated:");
  await call("read_text_file", { path: at("ghost.txt") });
  await call("write_file", { path: at("ghost.txt"), content: "text\n" });

  show("A listed destination that is no join of a listed directory and a name:");
  await move(at("offer.txt"), at("archive"));

  show("A listed file into a listed directory, under its own name:");
  await move(at("offer.txt"), at("archive", "offer.txt"));

  show("Text of the model's own into a listed file (content: local):");
  await call("write_file", { path: at("notes.txt"), content: "read on Monday\n" });

  show("A destination that exists. The gate cannot know; the server refuses:");
  await move(at("archive", "old.txt"), at("archive", "offer.txt"));

  await client.close();
  const verified = execFileSync(writ, ["audit", "verify", "--state", state], { encoding: "utf8" });
  show("The log, every decision made again:\n  " + verified.split("\n")[0].replace(/\d+ records of \d+ sessions, /, ""));
} finally {
  rmSync(work, { recursive: true, force: true });
}
