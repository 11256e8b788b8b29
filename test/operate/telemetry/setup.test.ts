import { execFile } from 'node:child_process'
import { symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { expect, onTestFinished, test } from 'vitest'
import { blocksOf, pageOf } from '../../docs/pages.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { Collector } from './collector.ts'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const run = promisify(execFile)

const application = `
  import { sdk } from './instrumentation.ts'
  import { createReceiver, unverified } from 'media-webhooks'
  import { openTelemetry } from 'media-webhooks/opentelemetry'
  import { deliver, samplePayload } from 'media-webhooks/testing'
  const receiver = createReceiver({ verify: unverified(), telemetry: openTelemetry() })
  receiver.on('encoding.finished', () => {})
  const { handled } = await deliver(receiver, samplePayload('encoding.finished'))
  await handled
  await sdk.shutdown()
  await receiver.close()`

test('the setup of the docs exports the spans and metrics of an application', async () => {
  const setup = blocksOf(pageOf('telemetry')).find(({ code }) => code.startsWith('// instrumentation.ts'))
  const folder = await temporaryFolder()
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'), 'dir')
  await writeFile(join(folder, 'instrumentation.ts'), setup?.code ?? '')
  await writeFile(join(folder, 'application.ts'), application)
  const program = join(folder, 'program.mjs')
  await build({
    entryPoints: [join(folder, 'application.ts')],
    outfile: program,
    bundle: true,
    platform: 'node',
    format: 'esm',
    external: ['@opentelemetry/*', 'zod', 'lru-cache'],
    tsconfig: join(root, 'docs/tsconfig.json'),
    logLevel: 'error',
  })

  const collector = await Collector.start()
  onTestFinished(() => collector.close())
  await run(process.execPath, [program], {
    env: { ...process.env, OTEL_EXPORTER_OTLP_ENDPOINT: collector.url },
    timeout: 120_000,
  })
  const [delivery] = collector.named('receive')
  expect(collector.named('process')).toMatchObject([{ traceId: delivery?.traceId, parent: delivery?.spanId }])
  expect([...collector.metrics.keys()]).toContain('messaging.process.duration')
  expect(collector.bodies.join()).toContain('uploads')
})
