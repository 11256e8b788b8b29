import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { type ServerDeployment, serverDeployment } from './server-deployment.ts'

const require = createRequire(import.meta.url)

/** Deploys a program of `programs/`, which mounts its receiver at `/webhooks/media`, with an inbox. */
export const nodeProgram = (name: string, inbox: 'memory' | 'sqlite') => (): Promise<ServerDeployment> =>
  serverDeployment({
    command: process.execPath,
    args: ['--import', require.resolve('tsx'), fileURLToPath(new URL(`programs/${name}.ts`, import.meta.url))],
    cwd: fileURLToPath(new URL('.', import.meta.url)),
    env: { INBOX: inbox },
    path: '/webhooks/media',
  })
