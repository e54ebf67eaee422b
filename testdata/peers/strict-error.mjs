// A server over stdio whose one tool publishes an outputSchema and answers with
// an error whose structuredContent does not satisfy it: what a gateway's refusal
// must not look like.
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const server = new Server({ name: "strict-error", version: "1" }, { capabilities: { tools: {} } });
server.setRequestHandler(ListToolsRequestSchema, () => ({
  tools: [{
    name: "act",
    inputSchema: { type: "object" },
    outputSchema: { type: "object", properties: { content: { type: "string" } }, required: ["content"], additionalProperties: false },
  }],
}));
server.setRequestHandler(CallToolRequestSchema, () => ({
  isError: true,
  content: [{ type: "text", text: "refused" }],
  structuredContent: { status: "rejected" },
}));
await server.connect(new StdioServerTransport());
