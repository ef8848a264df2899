// The pages for people: the console, the reference, and the page that says where they are. Pages are read again each time;
// what they load is cached for ever.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Refusal } from '../../domain/errors.ts';
import { consoleAssets, type PageFile, secured } from './assets.ts';

const HIDDEN = { schema: { hide: true } };

export function pages(app: FastifyInstance): void {
  const render = consoleAssets(app);

  const console = render('index.html', '../', 'app');
  app.get('/console', HIDDEN, async (request, reply) =>
    // Links in the console are relative to this address with a slash.
    isFolder(request) ? send(reply, console) : reply.redirect('console/', 308),
  );

  const docs = { beside: render('reference.html', '', REFERENCE), below: render('reference.html', '../', REFERENCE) };
  app.get('/docs', HIDDEN, async (request, reply) => send(reply, isFolder(request) ? docs.below : docs.beside));

  const welcome = render('welcome.html', '');
  app.get('/', HIDDEN, async ({ headers: { accept } }, reply) => {
    reply.header('vary', 'Accept');
    // A program that came here has the wrong address.
    if (!accept?.includes('text/html')) throw new Refusal('route_not_found');
    return send(reply, welcome);
  });
}

const REFERENCE = 'reference/app';

const isFolder = ({ raw }: FastifyRequest): boolean => raw.url?.split('?', 1)[0]?.endsWith('/') === true;

const send = (reply: FastifyReply, { html, policy }: PageFile): FastifyReply =>
  secured(reply, policy).header('cache-control', 'no-cache').type('text/html; charset=utf-8').send(html);
