// A server over stdio whose results say the same in no two places: to see which of
// them a client shows its model.
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const text = { content: [{ type: "text", text: "WORDS" }], _meta: { aside: "ASIDE" } };
const structured = { ...text, structuredContent: { members: "MEMBERS" } };
const tools = {
  answer: structured,
  answer_text: { ...text, content: [{ type: "text", text: JSON.stringify({ words: "WORDS" }) }] },
  fail: { ...text, isError: true },
  fail_structured: { ...structured, isError: true },
};

const server = new Server({ name: "shown", version: "1" }, { capabilities: { tools: {} } });
server.setRequestHandler(ListToolsRequestSchema, () => ({
  tools: Object.keys(tools).map((name) => ({ name, inputSchema: { type: "object", properties: {} }, annotations: { readOnlyHint: true } })),
}));
server.setRequestHandler(CallToolRequestSchema, (request) => tools[request.params.name]);
await server.connect(new StdioServerTransport());
