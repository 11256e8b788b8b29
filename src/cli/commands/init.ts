import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { pasted, program } from '../help.ts'
import { defineCommand } from '../shared/command.ts'
import { choice, required, toggle } from '../shared/flags.ts'
import { shellQuoted } from '../shared/text.ts'
import { frameworks, type InboxChoice, inboxes, type ServerChoices, serverFile } from './init/server-file.ts'

const namesOf = <Name extends string>(choices: Readonly<Record<Name, unknown>>) => Object.keys(choices) as Name[]

/** The packages to install: those of the program, and those of its development. */
export function packagesOf({ framework, inbox, sender }: ServerChoices, typescript: boolean) {
  const parts: readonly InboxChoice[] = [frameworks[framework], inboxes[inbox]]
  // Node has SQLite built in since 22.13.
  const driver = inbox === 'sqlite' && process.getBuiltinModule('node:sqlite') === undefined ? ['libsql'] : []
  const packages = [...parts.flatMap((part) => part.packages ?? []), ...driver, ...(sender === 'own' ? ['zod'] : [])]
  const types = parts.flatMap((part) => part.types ?? [])
  return { packages, development: typescript ? ['tsx', '@types/node', ...types] : [] }
}

/** The commands that install the packages, start the server and send it an event. */
function nextSteps(file: string, choices: ServerChoices, typescript: boolean) {
  const { packages, development } = packagesOf(choices, typescript)
  const install = [...(isInstalled() ? [] : [program]), ...packages]
  const { variable }: InboxChoice = inboxes[choices.inbox]
  const token = randomBytes(16).toString('hex')
  const settings = [`WEBHOOK_TOKEN=${token}`, ...(variable === undefined ? [] : [variable.join('=')])]
  const to = shellQuoted(`http://127.0.0.1:3000/webhooks/media?token=${token}`)
  const event = '{"type":"video.ready","id":"1","video_id":"film","data":{"seconds":12}}'
  return {
    install: [
      ...(install.length === 0 ? [] : [`npm install ${install.join(' ')}`]),
      ...(development.length === 0 ? [] : [`npm install --save-dev ${development.join(' ')}`]),
    ],
    start: `${settings.join(' ')} ${typescript ? 'npx tsx' : 'node'} ${file}`,
    send:
      choices.sender === 'own'
        ? `echo ${shellQuoted(event)} | ${pasted} trigger --body - --to ${to}`
        : `${pasted} trigger lifecycle --time-scale 0.1 --to ${to}`,
  }
}

/** True if this folder's package.json names the package, from wherever it was installed. */
function isInstalled(): boolean {
  if (!existsSync('package.json')) return false
  const { dependencies = {}, devDependencies = {} } = JSON.parse(readFileSync('package.json', 'utf8'))
  return program in { ...dependencies, ...devDependencies }
}

export const init = defineCommand({
  name: 'init',
  summary: 'writes a server with a receiver, and prints the commands that run it',
  details:
    'It writes server.mjs, or server.mts with --ts, into this folder. It overwrites no file and installs nothing.\n' +
    "--sender own writes the definition of your service's events; the default is the media service.",
  positionalFlag: 'framework',
  flags: {
    framework: required(choice(namesOf(frameworks), 'the framework; node is node:http')),
    inbox: choice(namesOf(inboxes), 'where accepted events are kept (default: memory, which a crash empties)'),
    sender: choice(['media-service', 'own'], 'whose events (default: media-service)'),
    ts: toggle('write TypeScript'),
  },
  json: 'print one JSON object: file, install, start, send',
  examples: ['init express', 'init hono --inbox sqlite --ts', 'init fastify --inbox postgres --sender own'],
  async run({ values }, screen) {
    const { framework, inbox = 'memory', sender = 'media-service', ts = false, json } = values
    const choices: ServerChoices = { framework, inbox, sender }
    const file = ts ? 'server.mts' : 'server.mjs'
    await writeFile(file, serverFile(choices), { flag: 'wx' }).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'EEXIST')
        throw new Error(`there is a ${file} already, and init overwrites no file: move it, or run init elsewhere`)
      throw new Error(`cannot write ${file} in this folder: ${error.code}`, { cause: error })
    })
    const { install, start, send } = nextSteps(file, choices, ts)
    if (json) screen.json({ file, install, start, send })
    else {
      const steps = [...(install.length === 0 ? [] : [['Install', install]]), ['Start it', [start]]] as const
      const all = [...steps, ['Send it events, from another terminal', [send]]] as const
      screen.print(`Wrote ${file}.`)
      for (const [title, lines] of all) screen.print(`\n${title as string}:\n  ${(lines as string[]).join('\n  ')}`)
    }
    return 0
  },
})
