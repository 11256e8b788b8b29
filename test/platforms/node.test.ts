import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { provePlatform } from './prove-platform.ts'
import { serverDeployment } from './server-deployment.ts'

const require = createRequire(import.meta.url)

const onNode = (inbox: string) => () =>
  serverDeployment({
    command: process.execPath,
    args: ['--import', require.resolve('tsx'), fileURLToPath(new URL('programs/node.ts', import.meta.url))],
    cwd: fileURLToPath(new URL('.', import.meta.url)),
    env: { INBOX: inbox },
    path: '/webhooks/media',
  })

provePlatform('node memory', onNode('memory'))
provePlatform('node sqlite', onNode('sqlite'))
