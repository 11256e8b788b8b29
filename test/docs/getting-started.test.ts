import { spawn } from 'node:child_process'
import { symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { blocksOf, type Page, pageOf, shellLines } from './pages.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const tsx = ['--import', import.meta.resolve('tsx')]

/** A page that a reader follows in an empty folder, against the source and on free ports. */
async function follow(page: Page) {
  const folder = await temporaryFolder()
  await symlink(`${root}node_modules`, join(folder, 'node_modules'))
  const ports = { '3000': `${await freePort()}`, '4010': `${await freePort()}` }
  const adapt = (text: string) =>
    text
      .replace('media-webhooks dev', 'media-webhooks dev --port 4010') // its default
      .replace(/\b(3000|4010)\b/g, (port) => ports[port as keyof typeof ports])

  for (const { code } of blocksOf(page)) {
    const [, file] = /^\/\/ (\S+\.mjs)\n/.exec(code) ?? []
    if (file !== undefined) await writeFile(join(folder, file), adapt(code))
  }
  const run = (line: string) => start(adapt(line), folder)
  return { run, lines: shellLines(page), isUp: (port: keyof typeof ports) => isUp(ports[port]) }
}

/** Runs a line of the page. The lines after it see its exports. */
const exported: Record<string, string> = {}
function start(line: string, cwd: string) {
  for (const [, name = '', value = ''] of line.startsWith('export ') ? line.matchAll(/(\w+)=(\S+)/g) : [])
    exported[name] = value
  const command = line
    .replace('npx media-webhooks', `node ${tsx.join(' ')} ${root}src/cli/main.ts`)
    .replace('node server.mjs', `node ${tsx.join(' ')} server.mjs`)
  const { PATH = '' } = process.env
  const env = { PATH, TSX_TSCONFIG_PATH: `${root}docs/tsconfig.json`, ...exported }
  const child = spawn('sh', ['-c', command.replace(/^((?:\w+=\S+ )*)node/, '$1exec node')], { cwd, env })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (output += text))
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  onTestFinished(async () => {
    child.kill()
    await ended
  })
  return { output: () => output, ended }
}

async function isUp(port: string): Promise<boolean> {
  return fetch(`http://127.0.0.1:${port}`).then(
    () => true,
    () => false,
  )
}

const soon = { interval: 50 }

test('"Getting started" leads to an event in a handler, and to an endpoint that doctor finds well', async () => {
  const page = await follow(pageOf('getting-started'))
  const [server = '', emulator = '', ...rest] = page.lines.filter((line) => !/^(cd|mkdir|npm)\b/.test(line))
  const running = page.run(server)
  await expect.poll(() => page.isUp('3000'), soon).toBe(true)
  page.run(emulator)
  await expect.poll(() => page.isUp('4010'), soon).toBe(true)
  for (const line of rest) {
    const step = page.run(line)
    expect(await step.ended, step.output()).toBe(0)
  }
  await expect.poll(running.output, soon).toMatch(/^publish \S+ in 360p, 720p$/m)
  expect(running.output()).not.toContain('publish 00000000-') // the media of doctor, which does not exist
})

test('the first screen of the README leads to an event in a handler', async () => {
  const page = await follow(pageOf('README'))
  const [server = '', trigger = ''] = page.lines.filter((line) => /server\.mjs|trigger/.test(line))
  const running = page.run(server)
  await expect.poll(() => page.isUp('3000'), soon).toBe(true)
  const triggered = page.run(trigger)
  expect(await triggered.ended, triggered.output()).toBe(0)
  await expect.poll(running.output, soon).toMatch(/^publish \S+ in 360p, 720p$/m)
})
