import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { cp, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { freePort } from '../support/free-port.ts'
import { postJson } from '../support/post-json.ts'
import { findPostgres } from '../support/postgres/find-postgres.ts'
import { PostgresServer } from '../support/postgres/postgres-server.ts'
import { startProgram } from '../support/program.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { pageOf } from './pages.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const folder = `${root}examples/production/`
const read = (name: string) => readFileSync(folder + name, 'utf8')

const named = Array.from(
  pageOf('production').text.matchAll(/^```\w+ \[([^\]\n]+)\]\n(.*?)^```$/gms),
  ([, name = '', code]) => ({
    name,
    code,
  }),
)

test('every file of the page is a file of the example', () => {
  expect(named.map(({ name }) => name).toSorted()).toEqual([
    'Dockerfile',
    'compose.yaml',
    'ecosystem.config.cjs',
    'kubernetes.yaml',
    'metrics.js',
    'nodemon.json',
    'server.js',
    'webhooks.service',
  ])
  for (const { name, code } of named) expect(code).toBe(read(name))
})

const compose = parse(read('compose.yaml'))
const [deployment, service] = parseAllDocuments(read('kubernetes.yaml')).map((each) => {
  expect(each.errors).toEqual([])
  return each.toJS()
})
const pod = deployment.spec.template.spec
const [container] = pod.containers

/** The sections of a unit file, each with its settings. */
const unit = Object.fromEntries(
  Array.from(read('webhooks.service').matchAll(/^\[(\w+)\]\n((?:\w+=.*\n)+)/gm), ([, section, lines = '']) => [
    section,
    Object.fromEntries(
      lines
        .trim()
        .split('\n')
        .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
    ),
  ]),
)
const pm2 = createRequire(import.meta.url)(`${folder}ecosystem.config.cjs`).apps[0]

describe('the grace period', () => {
  const timeoutS = Number(/timeoutMs: ([\d_]+)/.exec(read('server.js'))?.[1]?.replace('_', '')) / 1_000
  const preStopS = Number(container.lifecycle.preStop.exec.command[1])

  test.each([
    ['Compose', Number.parseInt(compose.services.webhooks.stop_grace_period, 10)],
    ['Kubernetes, after preStop', pod.terminationGracePeriodSeconds - preStopS],
    ['systemd', Number(unit['Service'].TimeoutStopSec)],
    ['PM2', pm2.kill_timeout / 1_000],
    ['docker stop', Number(/docker stop --time (\d+)/.exec(pageOf('production').text)?.[1])],
  ])('of %s is at least 5 s above timeoutMs', (_, seconds) => {
    expect(timeoutS).toBeGreaterThan(0)
    expect(seconds).toBeGreaterThanOrEqual(timeoutS + 5)
  })
})

describe('what starts the server', () => {
  const command = ['node', '--import', './metrics.js', 'server.js']

  test('is Node itself, in each of the files, on files that are there', () => {
    const dockerfile = read('Dockerfile')
    expect(JSON.parse(/^CMD (\[.*\])$/m.exec(dockerfile)?.[1] as string)).toEqual(command)
    expect(unit['Service'].ExecStart).toBe(`/usr/bin/${command.join(' ')}`)
    expect(['node', ...pm2.node_args.split(' '), pm2.script]).toEqual(command)
    expect(JSON.parse(read('package.json')).scripts.start).toBe(command.join(' '))
    const [, copied = ''] = /^COPY (server.*) \.\/$/m.exec(dockerfile) ?? []
    expect(copied.split(' ').filter((name) => !existsSync(folder + name))).toEqual([])
    expect(copied.split(' ').toSorted()).toEqual(['metrics.js', 'server.js'])
  })

  test('is not root', () => {
    const dockerfile = read('Dockerfile')
    expect(/^USER (\w+)$/m.exec(dockerfile)?.[1]).toBe('node')
    expect(dockerfile.indexOf('USER')).toBeGreaterThan(dockerfile.indexOf('RUN'))
    expect(pod.securityContext).toEqual({ runAsNonRoot: true, runAsUser: 1000 })
    expect(unit['Service'].User).toBe('webhooks')
  })

  test('is restarted by nodemon with a signal that it handles', () => {
    expect(JSON.parse(read('nodemon.json'))).toEqual({ signal: 'SIGTERM' })
  })
})

test('the Service of Kubernetes reaches the pods of the Deployment', () => {
  const { labels } = deployment.spec.template.metadata
  expect([deployment.spec.selector.matchLabels, service.spec.selector]).toEqual([labels, labels])
  expect(container.ports.map(({ name }: { name: string }) => name)).toContain(service.spec.ports[0].targetPort)
})

describe.skipIf(!findPostgres())('the server', () => {
  /** Starts the files of the example as the Dockerfile does, against the source. */
  async function start() {
    const cwd = await temporaryFolder()
    await cp(folder, cwd, { recursive: true })
    await symlink(`${root}node_modules`, join(cwd, 'node_modules'))
    const postgres = await PostgresServer.start()
    onTestFinished(() => postgres.remove())
    const [PORT, metricsPort] = [`${await freePort()}`, `${await freePort()}`]
    const env = {
      TSX_TSCONFIG_PATH: `${root}docs/tsconfig.json`,
      WEBHOOK_TOKEN: 'a-token',
      DATABASE_URL: postgres.url,
      PORT,
      OTEL_EXPORTER_PROMETHEUS_HOST: '127.0.0.1',
      OTEL_EXPORTER_PROMETHEUS_PORT: metricsPort,
    }
    const args = ['--import', import.meta.resolve('tsx'), '--import', './metrics.js', 'server.js']
    const program = await startProgram(process.execPath, args, { cwd, env }, /^listening on (\d+)$/)
    onTestFinished(async () => void (await program.stop()))
    return {
      program,
      postgres,
      url: `http://127.0.0.1:${PORT}`,
      metrics: `http://127.0.0.1:${metricsPort}/metrics`,
      PORT,
    }
  }

  test('is ready as its probes say, handles an event, counts it, and ends with 0 on SIGTERM', async () => {
    const { program, url, metrics } = await start()
    const statusOf = async (probe: { httpGet: { path: string } }) => (await fetch(url + probe.httpGet.path)).status
    await expect.poll(() => statusOf(container.readinessProbe)).toBe(200)
    expect(await statusOf(container.livenessProbe)).toBe(200)
    const delivery = { type: 'encoding.finished', media_id: 'a-film', qualities: '360p,720p' }
    const response = await postJson(`${url}/webhooks/media?token=a-token`, delivery)
    expect([response.status, response.headers.get('keep-alive')]).toEqual([200, 'timeout=65'])
    await expect.poll(program.output).toContain('publish a-film in 360p, 720p')
    expect(await (await fetch(metrics)).text()).toMatch(/^media_webhooks_event_duration\w*_count\{.*\} 1$/m)
    expect(await program.stop('SIGTERM')).toBe(0)
    expect(program.output()).toMatch(/^media-webhooks: closed \{"signal":"SIGTERM","durationMs":\d+,"unfinished":0\}$/m)
  })

  test('is healthy for Compose until the database is away, and then still lives', async () => {
    const { postgres, url, PORT } = await start()
    const [, command, ...args] = compose.services.webhooks.healthcheck.test as string[]
    const check = () =>
      promisify(execFile)(
        command as string,
        args.map((each) => each.replace('3000', PORT)),
      ).then(
        () => 'healthy',
        ({ code }) => `ended with ${code}`,
      )
    await expect.poll(check).toBe('healthy')
    await postgres.stop('SIGKILL')
    await expect.poll(check).toBe('ended with 1')
    expect((await fetch(`${url}/live`)).status).toBe(200)
  })
})
