import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { provePlatform } from '../../platforms/platform.suite.ts'
import { type ServerDeployment, serverDeployment } from '../../platforms/server-deployment.ts'
import type { SetupName } from '../../platforms/setups.ts'
import { postJson } from '../../support/post-json.ts'
import { type InstalledExample, installExample } from './install-example.ts'

/** The value of `WEBHOOK_TOKEN`. */
export const token = 'a-token-of-the-test'

/** The commands and files of an example that is a server with a SQLite inbox at `INBOX_PATH` and a token in `WEBHOOK_TOKEN`. */
export interface ServerExample {
  /** Its folder in examples/. */
  readonly name: string
  /** The module with its handlers. */
  readonly handlers: string
  /** A folder of `fixtures/`, whose files are added to it. */
  readonly besides?: string
  /** What its files need besides the dependencies of the example, as npm takes them. */
  readonly packages?: readonly string[]
  /** The output of its script `build`, if it has one. */
  readonly built?: string
  /** `true` if it has a script `types`, because its build does not check the types. */
  readonly typed?: boolean
  /** @defaultValue Node */
  readonly command?: string
  /** The arguments that its script `start` gives to the command. */
  readonly args: readonly string[]
  readonly env?: Record<string, string>
  readonly listening?: RegExp
}

/**
 * Installs and builds an example, proves its row of the table of platforms, and ends it with slow handlers.
 * @returns its folder once it is installed, what its build wrote, and what starts it, for tests of its own
 */
export function proveExample(
  setup: SetupName,
  { name, built, typed, handlers, besides, packages = [], ...server }: ServerExample,
): { folder(): string; buildOutput(): string; start(): Promise<ServerDeployment> } {
  let example: InstalledExample
  let buildOutput = ''
  const files = mkdtempSync(join(tmpdir(), `inboxes-of-${name}-`))
  afterAll(() => rmSync(files, { recursive: true }))

  beforeAll(async () => {
    example = await installExample(name, { handlers, packages, ...(besides && { besides }) })
    if (built !== undefined) buildOutput = await example.script('build')
  })

  const start = (env: Record<string, string> = {}) =>
    serverDeployment({
      command: process.execPath,
      ...server,
      cwd: example.folder,
      env: { WEBHOOK_TOKEN: token, INBOX_PATH: join(files, `${crypto.randomUUID()}.db`), ...server.env, ...env },
      path: `/webhooks/media?token=${token}`,
    })

  if (built !== undefined) {
    test('the build needs no secret and opens no file', () => {
      expect(existsSync(join(example.folder, built))).toBe(true)
      expect(existsSync(join(example.folder, 'inbox.db'))).toBe(false)
    })
  }

  if (typed) test('its types are right', () => example.script('types'))

  test('a forged delivery is rejected', async () => {
    const deployment = await start()
    onTestFinished(() => deployment.stop())
    expect((await postJson(deployment.url.replace(token, 'a-guess'), { type: 'file.received' })).status).toBe(401)
  })

  provePlatform(setup, () => start())

  test('SIGTERM lets a slow handler finish, and loses no event that waits', async () => {
    const deployment = await start({ HANDLER_MS: '1500' })
    onTestFinished(() => deployment.stop())
    const ids = Array.from({ length: 4 }, () => crypto.randomUUID())
    for (const media_id of ids) {
      const response = await postJson(deployment.url, { type: 'encoding.finished', media_id })
      expect([response.status, await response.json()]).toEqual([200, { status: 'accepted' }])
    }
    await deployment.restart()
    const lines = ids.map((id) => `encoding.finished ${id} `)
    // It has begun before the others arrived. If it had been cut off, it would only begin again now.
    expect(await deployment.handled()).toContain(lines[0])
    await expect.poll(async () => (await deployment.handled()).toSorted()).toEqual(lines.toSorted())
    const again = await postJson(deployment.url, { type: 'encoding.finished', media_id: ids[0] })
    expect(await again.json()).toEqual({ status: 'duplicate' })
  })

  test('an event that a killed server has left is handled when the next one starts, before any delivery', async () => {
    const deployment = await start({ HANDLER_MS: '1500' })
    onTestFinished(() => deployment.stop())
    await postJson(deployment.url, { type: 'encoding.finished', media_id: 'left' })
    await deployment.restart('SIGKILL')
    await expect.poll(() => deployment.handled()).toEqual(['encoding.finished left '])
  })

  return { folder: () => example.folder, buildOutput: () => buildOutput, start: () => start() }
}
