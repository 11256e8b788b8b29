import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { configDefaults, defineConfig, type TestProjectInlineConfiguration } from 'vitest/config'

/** What `npm test` leaves to `npm run test:all`. A new test is quick unless it is listed here. */
const slow = [
  // Processes that crash, storage that fails, and files that are locked.
  'test/{inbox,conformance}/**/{crash,crashes,crash-loop,outages,breaks,power-loss,failures,locked,lost-lock}.test.ts',
  // Redis and Postgres, beyond the contracts and what is lost or written twice.
  'test/inbox/bullmq/**/*.test.ts',
  'test/inbox/postgres/**/!(kills).test.ts',
  'test/contract/{inbox-postgres-polling,database-postgres,store-redis-http}.test.ts',
  'test/{inbox/bullmq,idempotency/redis,cli/inbox-postgres,cli/inbox-redis,operate/telemetry/crash}.test.ts',
  // A Postgres inside the process, which takes seconds to start.
  'test/{inbox/{guide,pglite}/*,contract/inbox-pglite}.test.ts',
  // Processes that are started again and again, files that take long to fill, and the compiler.
  'test/inbox/sqlite/{reading,opening,load,load-at-start,pausing,recovery,upkeep,file,clean-up,expectations}.test.ts',
  'test/inbox/sqlite/{suspects,hot-reload,unreadable,lost-file,clock,retry-from-outside}.test.ts',
  'test/{operate/dashboard/{access,export,mounting},docs/{code,recipes,senders},types/hovers}.test.ts',
  'test/cli/{dev,init,doctor,doctor-credentials,doctor-sample,inbox,trigger,inbox-reading,inbox-packages,listen-forwarding,listen-teach}.test.ts',
  'test/{receiver,inbox/sqlite}/path.test.ts',
  'test/{demo/scenes,adapters/{unread-bodies,close-server,close-on-signals},contract/{wrong-adapters,adapter-fastify4}}.test.ts',
  'test/service/emulator/workspace/secrets.test.ts',
  // Every platform as it is deployed.
  'test/{platforms,queues}/*.test.ts',
  'test/inbox/durable-object/{objects,kills}.test.ts',
  'test/contract/inbox-durable-object-from-worker.test.ts',
  // What other adapters, inboxes and parts of the emulator prove too.
  'test/{contract/adapter-{express4,fastify5,koa2,koa3},adapters/fastify,operate/telemetry/{traces,taken-over}}.test.ts',
  'test/inbox/sqlite/{strict-order,transactions,transaction-records,log-size,backup,pause}.test.ts',
  'test/{inbox/durable-object/{loading,pausing},inbox/queue/redis,service/emulator/{media/studio,sending/outbox}}.test.ts',
  // 40,000 deliveries, and 5,000 replays at 100 a second.
  'test/{handlers/limits-for-an-hour,operate/dashboard/page/large-replay}.test.ts',
  // A process with little memory.
  'test/inbox/memory/small-heap.test.ts',
  // Many random steps, much load, all defaults, and programs that are started again and again.
  'test/{inbox/model,service/emulator/{load,api/model,sending/outbox-limits}}.test.ts',
  'test/simulation/without-a-fix.test.ts',
  'test/{docs/getting-started,demo/start,demo/inbox,cli/process}.test.ts',
  'test/conformance/emulated-service.test.ts',
  // Wrong inboxes and stores, some of which are found by what does not come.
  'test/contract/wrong-{inboxes,databases,transactions}.test.ts',
]

/** Pages in Chromium. The files of a process share one browser. */
const pages = ['test/{operate/dashboard,service/emulator}/page/*.test.ts', 'test/docs/site/*.test.ts']

/** Tests of the package as a user installs it, which is built, packed and installed once before them. */
const installed = ['test/{package,runtimes,examples}/**/*.test.ts']

/** Frameworks that are too large for every `npm ci`, and every inbox on each runtime: one after another. */
const frameworks = ['test/examples/frameworks/*.test.ts', 'test/runtimes/inboxes.test.ts']

/** Tests that change what the files of a process share: globals, modules, or its one OpenTelemetry SDK. */
const alone = [
  'test/operate/telemetry/*.test.ts',
  'test/{verify/web-crypto,adapters/shared/mounted-receiver,support/can-test}.test.ts',
  // They count the timers of their process, or run all of them.
  'test/{service/client/aborting,inbox/operations/replay-all,operate/dashboard/acting/bulk-actions,internal/{timers,scheduling},receiver/{closing,reading}}.test.ts',
  'test/{idempotency/{leases,claims},inbox/memory/{expectations,timers},handlers/limiter,adapters/{fastify,close-server}}.test.ts',
  'test/{internal,inbox,verify}/**/workers*.test.ts',
  'test/simulation/*.test.ts',
]

/** The folder in which each run leaves a report, for CI to add up. */
const { TEST_REPORTS: reports } = process.env

export default defineConfig({
  test: {
    ...(reports !== undefined && {
      reporters: ['default', 'json'],
      outputFile: { json: join(reports, `${process.pid}.json`) },
    }),
    coverage: { include: ['{src,adapters}/**/*.ts'], reporter: ['text-summary', 'html'] },
    // The tests wait for servers more than they compute.
    maxWorkers: availableParallelism() + 1,
    projects: [
      project('quick', {
        include: ['test/**/*.test.ts'],
        exclude: [...slow, ...pages, ...installed, ...alone],
        // Files share their modules, which are loaded once in a process.
        isolate: false,
      }),
      project('alone', { include: alone, exclude: slow }),
      project('types', {
        include: [],
        typecheck: { enabled: true, include: ['test/types/*.test-d.ts'], tsconfig: 'test/types/tsconfig.json' },
      }),
      project('slow', { include: slow }),
      project('pages', { include: pages, exclude: slow, isolate: false }),
      project('installed', { include: installed, exclude: frameworks, globalSetup: 'test/package/install.ts' }),
      project('frameworks', { include: frameworks, globalSetup: 'test/package/install.ts', fileParallelism: false }),
    ],
  },
})

function project(
  name: string,
  { exclude = [], ...options }: TestProjectInlineConfiguration['test'] & object,
): TestProjectInlineConfiguration {
  return {
    // Source is tested without a build.
    resolve: { alias: { '#crypto': fileURLToPath(new URL('./src/internal/crypto/node.ts', import.meta.url)) } },
    test: {
      name,
      exclude: [...configDefaults.exclude, ...exclude],
      setupFiles: 'test/support/setup.ts',
      // A test ends as soon as it has what it waits for. These limits end one that hangs, on a busy machine too.
      testTimeout: 300_000,
      hookTimeout: 300_000,
      expect: { poll: { timeout: 60_000 } },
      // CI makes a second try, and names the test: its machine can stall for longer than any wait.
      retry: reports === undefined ? 0 : 1,
      ...options,
    },
  }
}
