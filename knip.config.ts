import type { KnipConfig } from 'knip'
import { sourcesIn } from './entries.ts'
import manifest from './package.json' with { type: 'json' }

export default {
  entry: [
    ...sourcesIn([manifest.exports, manifest.imports['#crypto'].default, manifest.bin]),
    '.ci/count.mjs',
    'bench/children/*.ts',
    'docs/.vitepress/{config,theme/index}.ts',
    // The pages load them, by their paths.
    'src/{operate/dashboard,service/emulator}/page/browser.js',
    'test/package/fixtures/**',
    'test/soak/*.ts',
    'test/{platforms,adapters}/programs/*.ts',
    'test/platforms/lambda/{sandbox,functions/*}.ts',
    'test/queues/cloudflare/worker.ts',
    'test/inbox/sqlite/processes/*.ts',
    'test/operate/telemetry/processes/*.ts',
    'test/runtimes/{bun,deno,worker,worker-with-redis,inbox-server}.js',
    'examples/*/{server,worker,functions}.ts',
    'examples/production/{server,metrics}.js',
    'examples/production/ecosystem.config.cjs',
    'test/examples/frameworks/*.test.ts',
  ],
  project: ['{.ci,src,adapters,demo,bench,test,examples}/**/*.{ts,tsx,js}', '*.{ts,mjs}', 'docs/.vitepress/**/*.ts'],
  // Installed and built by their tests, with packages of their own.
  ignore: [
    'examples/{nextjs,nestjs,sveltekit,nitro,elysia,postgres}/**',
    'test/examples/frameworks/fixtures/**',
    'test/package/fixtures/bundlers/**',
  ],
  // A type that is part of an exported function's signature is exported with it.
  ignoreExportsUsedInFile: { interface: true, type: true },
  // Started from where npm puts their binaries (test/support/find-runtime.ts); fengari is loaded by createRequire.
  // The test of Jest installs its jsdom.
  // vue comes with vitepress, in the version that it needs. A page shows how an application starts the SDK, and a test runs it.
  ignoreDependencies: ['bun', 'deno', 'workerd', 'fengari', 'vue', '@opentelemetry/sdk-node', 'jest-environment-jsdom'],
  // Of Linux, and of the tests that say so where it is missing.
  ignoreBinaries: ['taskset', 'redis-server', 'strace', 'unshare'],
} satisfies KnipConfig
