import { resolve } from 'node:path'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'

// What a user reads in the editor, of a receiver with a sender of its own.

const file = resolve('test/types/in-the-editor.ts')

const head = `import * as z from 'zod'
import { createReceiver, defineSender, unverified } from '../../src/index.ts'
const mux = defineSender({
  name: 'mux',
  events: {
    'video.asset.ready': z.object({ id: z.string(), duration: z.number().optional() }),
    'video.asset.errored': z.object({ id: z.string(), reason: z.string() }),
  },
  read: ({ type, id, data }) => ({ type, mediaId: data.id, id, data }),
})
const receiver = createReceiver({ sender: mux, verify: unverified() })
const plain = createReceiver({ verify: unverified() })
`

let text = ''
let version = 0
const { config } = ts.readConfigFile('tsconfig.json', ts.sys.readFile)
const { options } = ts.parseJsonConfigFileContent(config, ts.sys, resolve('.'))
const service = ts.createLanguageService({
  getCompilationSettings: () => ({ ...options, noUnusedLocals: false, noUnusedParameters: false }),
  getScriptFileNames: () => [file],
  getScriptVersion: (name) => (name === file ? `${version}` : '1'),
  getScriptSnapshot(name) {
    const content = name === file ? text : ts.sys.readFile(name)
    return content === undefined ? undefined : ts.ScriptSnapshot.fromString(content)
  },
  getCurrentDirectory: () => resolve('.'),
  getDefaultLibFileName: ts.getDefaultLibFilePath,
  fileExists: (name) => name === file || ts.sys.fileExists(name),
  readFile: ts.sys.readFile,
  directoryExists: ts.sys.directoryExists,
  getDirectories: ts.sys.getDirectories,
})

function edit(code: string): void {
  text = head + code
  version++
}

/** Returns what an editor shows at the last occurrence of a name. */
function hover(code: string, name: string): string {
  edit(code)
  const info = service.getQuickInfoAtPosition(file, text.lastIndexOf(name))
  return ts.displayPartsToString(info?.displayParts).replace(/\s+/g, ' ')
}

/** Returns the errors of a piece of code, each with its reasons. */
function errors(code: string): string[] {
  edit(code)
  return service
    .getSemanticDiagnostics(file)
    .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n').replace(/\s+/g, ' '))
}

const data = '{ id: string; duration?: number | undefined; }'
const sender = `Sender<{ 'video.asset.ready': ${data}; 'video.asset.errored': { id: string; reason: string; }; }>`
const types = '"video.asset.ready" | "video.asset.errored"'

describe('an editor shows', () => {
  test('a receiver by its sender', () => {
    expect(hover('receiver', 'receiver')).toBe(`const receiver: Receiver<unknown, ${sender}>`)
    expect(hover('plain', 'plain')).toBe('const plain: Receiver<unknown, MediaService>')
  })

  test('an event by its type and data', () => {
    const on = (name: string) => `${name}.on('video.asset.ready', (event) => event)`
    expect(hover(on('receiver'), 'event')).toBe(`(parameter) event: SenderEvent<"video.asset.ready", ${data}>`)
    const media = "plain.on('encoding.finished', (event) => event)"
    expect(hover(media, 'event')).toBe('(parameter) event: EncodingFinishedEvent')
  })
})

describe('the compiler says of', () => {
  test.each<[string, string, string]>([
    [
      'a misspelt type',
      "receiver.on('video.asset.redy', () => {})",
      `Argument of type '"video.asset.redy"' is not assignable to parameter of type '${types} | readonly (${types})[]'.`,
    ],
    [
      'a field that the data does not have',
      "receiver.on('video.asset.ready', (event) => event.data.durations)",
      `Property 'durations' does not exist on type '${data}'. Did you mean 'duration'?`,
    ],
    [
      'a type that the sender does not have, as a handler',
      "createReceiver({ sender: mux, verify: unverified(), handlers: { 'encoding.finished': () => {} } })",
      `Object literal may only specify known properties, and ''encoding.finished'' does not exist in type 'Handlers<unknown, NoInfer<${sender}>>'.`,
    ],
    [
      'an expectation that nothing ends',
      "receiver.expect('video.asset.ready', { then: 'video.asset.gone', within: '2 h' }, () => {})",
      `Type '"video.asset.gone"' is not assignable to type '${types} | readonly (${types})[]'.`,
    ],
    [
      'a reading without a media id',
      "defineSender({ name: 'own', events: { a: z.object({}) }, read: ({ type }) => ({ type }) })",
      "Type '{ type: any; }' is not assignable to type 'SenderReading | readonly ListedEvent[] | undefined'. " +
        "Property 'mediaId' is missing in type '{ type: any; }' but required in type 'SenderReading'.",
    ],
  ])('%s', (_, code, message) => {
    expect(errors(code)).toEqual([message])
  })
})
