// Loaded into a server before its own code: a Redis of its own, in memory, on a port of this
// machine that nothing else has. It ends with this process.
import { spawn } from 'node:child_process';
import { createServer } from 'node:net';

const port = await new Promise((use) => {
  const free = createServer().listen(0, '127.0.0.1', () => {
    const { port } = free.address();
    free.close(() => use(port));
  });
});
// The server and its tools are one program, which goes by its name; Debian's package of the server starts one.
const redis = spawn('redis-check-rdb', ['--port', port, '--bind', '127.0.0.1', '--save', ''], { argv0: 'redis-server', stdio: ['ignore', 'pipe', 'ignore'] });
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => redis.kill());
process.on('exit', () => redis.kill());
await new Promise((ready) => redis.stdout.on('data', (line) => /Ready to accept/.test(line) && ready()));
redis.unref();
redis.stdout.unref();
process.argv[2] = `redis://127.0.0.1:${port}`;
