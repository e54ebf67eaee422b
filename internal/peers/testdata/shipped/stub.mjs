// Loaded into a server before its own code: its API, in this process. What is asked for is
// answered from the file that STUB names: a list of [method, end of the path, status, body].
import { readFileSync } from 'node:fs';

const routes = JSON.parse(readFileSync(process.env.STUB, 'utf8'));

globalThis.fetch = async (to, init = {}) => {
  const method = init.method ?? 'GET';
  const path = new URL(to).pathname;
  const route = routes.find(([m, end]) => m === method && path.endsWith(end));
  const [, , status, body] = route ?? [0, 0, 404, { message: `no ${method} ${path}` }];
  return new Response(JSON.stringify(body), { status, headers: { 'content-type': 'application/json' } });
};
