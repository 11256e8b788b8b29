import { nodeProgram } from './node-program.ts'
import { provePlatform } from './prove-platform.ts'

provePlatform('fastify sqlite', nodeProgram('fastify', 'sqlite'))
