import { defineCommand } from '../shared/command.ts'
import { port, text } from '../shared/flags.ts'
import { readScheme, schemeChoice, schemeFlags, secretOf } from '../shared/schemes.ts'
import { secretUrl } from '../shared/secret-url.ts'
import { interrupted, servingExitCodes } from '../shared/serving.ts'
import { shellQuoted } from '../shared/text.ts'
import { standardPort, startListening } from './listen/start-listening.ts'

export const listen = defineCommand({
  name: 'listen',
  summary: 'receives, prints and forwards deliveries, finds their verifier, and writes the sender of another service',
  details:
    'It accepts deliveries at any path, and from anyone unless you pass --verify. With --secret it finds the verifier\n' +
    "that accepts them and prints the code to paste. For an event that is not the media service's it prints the names and\n" +
    'types of the fields, never their values, and a sender guessed from them. Credentials are masked. The sender gets\n' +
    'the answer of this command, not of --forward-to. Saved files contain credentials, and only you can read them.',
  flags: {
    port: port(standardPort),
    verify: schemeChoice('reject deliveries that this scheme does not verify'),
    forwardTo: secretUrl('save each delivery answered 200 and forward it to this URL'),
    save: text('<folder>', 'save deliveries there (with --forward-to, default: a new temporary folder)'),
    write: text('<file>', "write the sender for another service's deliveries to this new file, and extend it"),
    ...schemeFlags,
  },
  json: 'print a line with the URL, then one JSON object per delivery: outcome, status, headers, event, advice, lines, fields, sender, written, file, forwarded',
  exitCodes: servingExitCodes,
  serves: true,
  examples: [
    'listen',
    'listen --port 0 --secret s3cret',
    'listen --secret s3cret --write sender.ts',
    'listen --forward-to http://127.0.0.1:3000/webhooks/media --save deliveries',
  ],
  async run({ values, given }, screen) {
    const scheme = readScheme('--verify', values.verify, { values, given }, ['secret'])
    const secret = scheme === undefined ? values.secret : secretOf(scheme)
    const { port = standardPort, forwardTo: to, save, write, json } = values
    const listening = await startListening({ port, scheme, secret, to, save, write, json, advises: true }, screen)
    const { url, folder } = listening
    if (json) screen.json({ url, ...(folder !== undefined && { folder }) })
    else {
      screen.print(`Listening on ${url}, at any path. Press Ctrl-C to stop.`)
      if (folder !== undefined) screen.print(`Deliveries answered 200 are saved in ${shellQuoted(folder)}`)
    }
    await interrupted(screen.signal)
    await listening.close()
    return 0
  },
})
